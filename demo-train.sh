#!/bin/sh
# Trains a model of characters on two ranks: the sample gpt2, whose 256 tokens become characters, on the texts of licences that Debian has.
# Takes a minute on two cores. Then the weights go back into the model, which writes.
#   ./demo-train.sh [TEXT-FILE] [STEPS]
set -eu
cd "$(dirname "$0")"
./setup.sh
srcdir=.
. tests/lib.sh
if [ $# -gt 0 ]; then cat "$1"; else cat /usr/share/common-licenses/[!GL]* /usr/share/common-licenses/*GPL-[23]*; fi | LC_ALL=C tr -cd '\12\40-\176' >"$work/text.txt"

mkdir "$work/model" "$work/trained"
cp samples/gpt2/model.onnx "$work/model"
cp tests/train/bytes.json "$work/model/tokenizer.json" # every character is a token

show() {
    echo "+ $*"
    "$@"
}
cd "$work"
show "$OLDPWD/tpc-shard" model/model.onnx --train --tp 2 -q -o ranks
show "$OLDPWD/tpc-run" ranks --train --data text.txt --sequence 64 --batch 16 --steps "${2:-1500}" --lr 5e-3 --save ck --log loss.csv |
    awk -F'[ /]' '!/^step/ || $2 == 1 || $2 % 100 == 0 { print; fflush() }'
show "$OLDPWD/tpc-shard" --merge ranks --weights ck -q -o trained/model.onnx
for prompt in "You may " "The License " "If the "; do
    printf '%s' "$prompt"
    "$OLDPWD/tpc-run" trained/model.onnx -q --prompt "$prompt" --generate 50 --temperature 0.6 --seed 1
done
