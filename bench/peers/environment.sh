#!/bin/sh
# environment.sh PYTHON: the virtual environment of the peers. One that is there is left as it is; build/peers-venv is made, with what
# requirements.txt names, from PyPI.
set -eu
python=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(dirname "$(dirname "$python")")
check='import jax, numpy, tensorflow, torch'
if [ -x "$python" ]; then
  TF_CPP_MIN_LOG_LEVEL=3 "$python" -c "$check" 2> /dev/null && exit 0
  if [ "$folder" != build/peers-venv ]; then
    echo "bench-peers: $python cannot import all of numpy, tensorflow, jax and torch" >&2
    echo "  fix: $python -m pip install -r $here/requirements.txt" >&2
    exit 1
  fi
elif [ "$folder" != build/peers-venv ]; then
  echo "bench-peers: there is no $python" >&2
  echo "  fix: name the Python of a virtual environment, or leave PEERS_PYTHON out to have one made" >&2
  exit 1
fi
echo "bench-peers: making $folder; TensorFlow, JAX and PyTorch come from PyPI" >&2
python3 -m venv "$folder"
"$python" -m pip install --quiet --requirement "$here/requirements.txt"
