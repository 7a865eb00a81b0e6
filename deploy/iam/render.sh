#!/usr/bin/env bash
# Fills in a document's placeholders:
#   cluster=w1 account=111122223333 region=ap-northeast-2 deploy/iam/render.sh controller.json
# Terraform's templatefile() reads the same placeholders.
set -euo pipefail

document=$1
: "${partition:=aws}" "${namespace:=kube-system}" "${service_account:=karpenter}"
text=$(cat "$(dirname "$0")/$document")
while [[ $text =~ \$\{([a-z_]+)\} ]]; do
    name=${BASH_REMATCH[1]}
    if [[ -z ${!name:-} ]]; then
        echo "$document needs $name=... in the environment" >&2
        exit 2
    fi
    text=${text//"\${$name}"/${!name}}
done
printf '%s\n' "$text"
