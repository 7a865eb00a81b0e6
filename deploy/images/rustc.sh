#!/usr/bin/env bash
# The compiler as cargo calls it (RUSTC_WRAPPER): rustc.sh RUSTC ARGUMENT...
#
# Of the EC2 SDK's hundreds of calls we make about thirty. The hint lets the compiler leave out what nobody
# calls, instead of the linker: two minutes of one processor instead of more than six. It is not stable yet,
# and so enabled for this one crate; what it cannot do is change what a program means.
set -euo pipefail

rustc=$1
shift
for ((at = 1; at < $#; at++)); do
    [ "${!at}" = --crate-name ] || continue
    after=$((at + 1))
    if [ "${!after}" = aws_sdk_ec2 ]; then
        RUSTC_BOOTSTRAP=1 exec "$rustc" "$@" -Zhint-mostly-unused
    fi
    break
done
exec "$rustc" "$@"
