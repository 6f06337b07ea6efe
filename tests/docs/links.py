"""What the pages refer to exists: the targets of links with their headings, and paths in the source tree that stand in `code`. Every page is in the
index docs/README.md, and in Makefile.am, which installs it.

    python3 tests/docs/links.py PAGE.md...
"""
import pathlib
import re
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
BUILT = {"tests/selfcheck", "tests/prove/prove", "tests/graphs/graphs", "tests/fuzz/guided_load"}     # programs, in the build folder
PATH = re.compile(r"`((?:src|passes|schemas|samples|tests|docs)/[\w./-]*\w)`")


def prose(page):
    """Without code blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return "\n".join(line for line in text.split("\n") if not line.startswith("    "))


def anchors(page):
    """Names of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", re.sub(r"`[^`\n]*`", "", prose(page))):
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"links to {target}, which is not there"
        elif anchor and anchor not in anchors(file):
            yield f"links to {target}#{anchor}, and there is no such heading"
    for path in PATH.findall(prose(page)):
        if path not in BUILT and not (TREE / path).exists():
            yield f"names {path}, which is not there"


def unlisted(page):
    name = page.relative_to(TREE).as_posix()
    if page.parent.name == "docs" and page.name != "README.md" and f"({page.name})" not in (TREE / "docs/README.md").read_text():
        yield "is not in docs/README.md"
    if page.parent.name == "docs" and f"\t{name}" not in (TREE / "Makefile.am").read_text():
        yield "is not in Makefile.am"


def main():
    pages = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    wrong = [f"{page.name} {what}" for page in pages for what in [*broken(page), *unlisted(page)]]
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
