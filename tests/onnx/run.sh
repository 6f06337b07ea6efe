#!/bin/sh
# The tests of src/onnx that need Python's onnx package (PYTHON names the interpreter); skipped where it is missing. The round trip of
# the samples needs no Python: what is written loads again and is written the same, byte for byte.
srcdir=${srcdir:-.}
tool=${builddir:-.}/tests/onnx/roundtrip
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
ran=0

for model in "$srcdir"/samples/*/model.onnx; do
    [ -f "$model" ] || continue
    ran=1
    rm -rf "$work/a" "$work/b"
    mkdir "$work/a" "$work/b"
    if "$tool" "$model" "$work/a/m.onnx" "$work/a/m.data" >/dev/null && "$tool" "$work/a/m.onnx" "$work/b/m.onnx" "$work/b/m.data" >/dev/null &&
        cmp "$work/a/m.onnx" "$work/b/m.onnx" && cmp "$work/a/m.data" "$work/b/m.data"; then :; else
        echo "FAILED round trip of $model"
        failed=1
    fi
done

# try COMMAND...: 77 is a skip, other statuses but 0 a failure.
try() {
    "$@"
    case $? in 0) ran=1 ;; 77) ;; *) failed=1 ;; esac
}
try "$python" "$srcdir/tests/proto/compare.py" "$srcdir/schemas/onnx.proto"
try "$python" "$srcdir/tests/onnx/forms.py" "$tool"
try "$python" "$srcdir/tests/onnx/hostile.py" "$tool"
try "$python" "$srcdir/tests/onnx/composed.py" "${builddir:-.}"
[ $failed = 0 ] || exit 1
[ $ran = 1 ] || exit 77
