#!/usr/bin/env python3
"""screenshots.py BUILD OUT [MODEL N]...: the report page of models on N ranks in a headless Chromium, light and dark, 400 and 1280 pixels wide,
as OUT/NAME-WIDTH-light.png and -dark.png. Without models those of samples/ that differ most: a decoder, an image model, a mixture of experts.

--height H takes so many pixels of the page, --from Y leaves out the first ones, --open all unfolds all layers, --only WIDTH-light makes one picture,
--trace FILE is shown beside the plan. With Pillow a picture has 256 colours.
"""
import argparse
import pathlib
import shutil
import subprocess
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parents[1] / "samples"
USUAL = [("llama", 4), ("vit", 2), ("qwen3-moe", 2)]
FRAME = '''<meta charset=utf-8><style>html,body{{margin:0;overflow:hidden}}iframe{{border:0;position:absolute;top:-{top}px;width:{width}px;height:{end}px}}</style>
<iframe src="{page}"></iframe><script>document.querySelector('iframe').onload = e => {{
  for (const d of e.target.contentDocument.querySelectorAll('{unfold}')) d.open = true;
}}</script>'''


def browser():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found or exit("screenshots.py needs Chromium")


def shoot(page, to, width, dark, args, work):
    frame = work / "frame.html"
    frame.write_text(FRAME.format(page=page.as_uri(), width=width, top=getattr(args, "from"), end=getattr(args, "from") + args.height,
                                  unfold="details.group" if args.open == "all" else "none"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files", "--disable-web-security",
             f"--user-data-dir={work}/profile", f"--window-size={width},{args.height}", "--virtual-time-budget=5000", f"--screenshot={to}"]
    if dark:
        flags.append("--blink-settings=preferredColorScheme=0")
    subprocess.run([browser(), *flags, frame.as_uri()], check=True, capture_output=True, timeout=120)
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(to).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(to, optimize=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("models", nargs="*", metavar="MODEL N")
    p.add_argument("--height", type=int, default=1500)
    p.add_argument("--from", type=int, default=0)
    p.add_argument("--open", choices=["all"])
    p.add_argument("--only")
    p.add_argument("--trace")
    args = p.parse_args()
    models = [(str(SAMPLES / name / "model.onnx"), str(n)) for name, n in USUAL] if not args.models else zip(args.models[::2], args.models[1::2])
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for model, ranks in models:
            page = work / "page.html"
            trace = ["--trace", str(pathlib.Path(args.trace).resolve())] if args.trace else []
            path = pathlib.Path(model).resolve()
            name = path.parent.name  # the page shows the path as it is given
            subprocess.run([args.build.resolve() / "tpc-shard", f"{name}/{path.name}", "--tp", ranks, "-n", "-q", "--report", f"html={page}", *trace],
                           check=True, cwd=path.parent.parent)
            for width in (400, 1280):
                for mode in ("light", "dark"):
                    if args.only in (None, f"{width}-{mode}"):
                        shoot(page, args.out.resolve() / f"{name}-{width}-{mode}.png", width, mode == "dark", args, work)


if __name__ == "__main__":
    main()
