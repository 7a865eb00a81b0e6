#!/usr/bin/env bash
# Runs a command as if on a machine of its own: its processes, network and mounts end with it, and what it
# does to them is seen by nobody else. Takes root, and no hardware.
#
#   integration-tests/own-machine.sh COMMAND...
#
# The machine has one address, that of a bridge which containers are plugged into, and a folder in memory for
# what they consist of: LONGSHORE_MACHINE_ADDRESS and LONGSHORE_MACHINE_DIR.
set -euo pipefail

[ $# -gt 0 ] || { echo "own-machine: name the command" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "own-machine: namespaces take root; run this as root" >&2; exit 1; }

# The new process is the first of its processes: when it ends the kernel ends the others.
# shellcheck disable=SC2016 # it is the inner shell that expands them
exec unshare --net --mount --pid --fork --kill-child --mount-proc -- bash -euc '
    export LONGSHORE_MACHINE_ADDRESS=10.87.0.1 LONGSHORE_MACHINE_DIR=/run/longshore-machine
    ip link set lo up
    ip link add pods type bridge
    ip address add $LONGSHORE_MACHINE_ADDRESS/24 dev pods
    ip link set pods up
    # Programs that ask for the address of the default route get the only one.
    ip route add default dev pods
    echo 1 >/proc/sys/net/ipv4/ip_forward
    mkdir -p $LONGSHORE_MACHINE_DIR
    mount -t tmpfs -o mode=755 machine $LONGSHORE_MACHINE_DIR
    # Not in place of the shell, which takes care of orphans.
    "$@" || exit
' own-machine "$@"
