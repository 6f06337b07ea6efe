"""instructions.py OBJDUMP OBJECT LIMIT...: instructions per multiply-add of kernels, out of their object code. LIMIT: FUNCTION=MOST, of the
best inner loop of the function, where its sums have registers; a larger number is a failure. Prints a line for each function."""
import re
import subprocess
import sys

# Multiply-adds of an instruction of ARM; of those on halves of registers, by their lanes.
PRODUCTS = [(r"[us]+dot|[us]+dota?", 16), (r"u?s?mmla", 32), (r"[us]ml[as]l2?\t.*\.8h,", 8), (r"[us]mull2?\t.*\.8h,", 8),
            (r"[us]mlal2?\t.*\.4s,", 4), (r"fml[as]\t.*\.4s", 4)]


def functions(objdump, path):
    """By name, its instructions: (address, text)."""
    found, code = {}, None
    for line in subprocess.run([objdump, "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True).stdout.splitlines():
        head, one = re.match(r"[0-9a-f]+ <(.+)>:", line), re.match(r" *([0-9a-f]+):\t(.*)", line)
        if head:
            code = found.setdefault(head[1], [])
        elif one:
            code.append((int(one[1], 16), one[2]))
    return found


def products(text):
    return next((n for pattern, n in PRODUCTS if re.match(f"(?:{pattern})", text)), 0)


def loops(code):
    """Innermost ones: the instructions between a branch and the one before it that it goes back to."""
    at = {address: i for i, (address, _) in enumerate(code)}
    spans = []
    for i, (address, text) in enumerate(code):
        to = re.match(r"(?:b\.\w+|cbn?z|tbn?z|b)\t(?:.*, )?([0-9a-f]+) <", text)
        if to and int(to[1], 16) in at and int(to[1], 16) <= address:
            spans.append((at[int(to[1], 16)], i))
    return [code[a : b + 1] for a, b in spans if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in spans)]


def main():
    found = functions(sys.argv[1], sys.argv[2])
    worse = 0
    for name, most in (limit.split("=") for limit in sys.argv[3:]):
        each = [(len(loop) / sum(products(text) for _, text in loop), len(loop)) for loop in loops(found.get(name, []))
                if sum(products(text) for _, text in loop)]
        if not each:
            sys.exit(f"{name}: no inner loop with products in {sys.argv[2]}")
        best, length = min(each)
        print(f"{name}: {best:.3f} instructions per multiply-add, in a loop of {length}, expected at most {most}")
        worse += best > float(most)
    sys.exit(worse > 0)


if __name__ == "__main__":
    main()
