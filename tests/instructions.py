"""instructions.py OBJDUMP OBJECT LIMIT...: instructions per multiply-add of kernels, out of their object code. LIMIT: FUNCTION=MOST, of the
best inner loop of the function, where its sums have registers; a larger number is a failure. FUNCTION:INSTRUCTION=MOST counts per lane of
this instruction, which each number meets once. Prints a line for each function."""
import re
import subprocess
import sys

# Multiply-adds of an instruction of ARM, by the lanes of its result.
PRODUCTS = [(r"[us]+dot|[us]+dota?", 16), (r"bfmmla", 16), (r"u?s?mmla", 32), (r"[us](ml[as]|mul)l2?\tv\d+\.8h,", 8), (r"([us]mlal2?|f?ml[as]|mul)\tv\d+\.4s,", 4)]


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


def numbers(text, instruction):
    """Lanes of its result, where it is the instruction."""
    lanes = re.match(rf"{instruction}\tv\d+\.(\d+)", text)
    return int(lanes[1]) if lanes else 0


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
    for limit, most in (argument.split("=") for argument in sys.argv[3:]):
        name, _, instruction = limit.partition(":")
        counts = [(sum(numbers(text, instruction) if instruction else products(text) for _, text in loop), len(loop))
                  for loop in loops(found.get(name, []))]
        each = [(length / count, length) for count, length in counts if count]
        if not each:
            sys.exit(f"{limit}: no such inner loop in {sys.argv[2]}")
        best, length = min(each)
        what = "number" if instruction else "multiply-add"
        print(f"{name}: {best:.3f} instructions per {what}, in a loop of {length}, expected at most {most}")
        worse += best > float(most)
    sys.exit(worse > 0)


if __name__ == "__main__":
    main()
