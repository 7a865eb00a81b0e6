#!/usr/bin/env bash
# The compiler as cargo calls it (RUSTC_WRAPPER): rustc.sh RUSTC ARGUMENT...
#
# Of hundreds of calls of an AWS SDK, and of hundreds of kinds of Kubernetes, we use a few. The hint lets the
# compiler leave out what nobody calls, instead of the linker: of the EC2 SDK two minutes of one processor instead
# of more than six. It is not stable yet, and so enabled for these crates alone; what it cannot do is change what
# a program means.
set -euo pipefail

rustc=$1
shift
for ((at = 1; at < $#; at++)); do
    [ "${!at}" = --crate-name ] || continue
    after=$((at + 1))
    case ${!after} in
        aws_sdk_* | k8s_openapi)
            RUSTC_BOOTSTRAP=1 exec "$rustc" "$@" -Zhint-mostly-unused
            ;;
    esac
    break
done
exec "$rustc" "$@"
