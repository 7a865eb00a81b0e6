#!/usr/bin/env bash
# Checks what nothing compiles: the chart lints and renders with each file under chart/ci, the
# rendered IAM documents are those their templates make, the Terraform module plans. Needs helm on
# the PATH; Terraform is skipped with a message where it or its provider is missing.
#
#   deploy/check.sh            check
#   deploy/check.sh --update   write the IAM documents anew
set -euo pipefail
cd "$(dirname "$0")"

# --- chart --------------------------------------------------------------------------------------

for values in chart/ci/*-values.yaml; do
    helm lint --strict --quiet chart -f "$values"
    helm template longshore chart -f "$values" >/dev/null
done 2> >(grep -v 'symbolic link' >&2)

# --- IAM ----------------------------------------------------------------------------------------

export account=111122223333 partition=aws
render() {
    local cluster=$1 region=$2 template=$3 rendered=iam/rendered/$1-$4
    local oidc_provider=oidc.eks.$region.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE
    export cluster region oidc_provider
    if [[ $update == --update ]]; then
        iam/render.sh "$template" >"$rendered"
    else
        diff -u "$rendered" <(iam/render.sh "$template")
    fi
}

update=${1:-}
render w0 us-east-1 w0-controller.json controller.json
for document in controller controller-optional controller-trust controller-trust-pod-identity \
    interruption-queue interruption-queue-policy interruption-rules; do
    render w1 ap-northeast-2 $document.json $document.json
done

# --- Terraform ----------------------------------------------------------------------------------

# In a copy, since init writes beside the module. The provider comes from wherever Terraform is set
# up to find it.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r iam terraform "$copy"
if terraform -chdir="$copy/terraform" init -input=false >"$copy/init.log" 2>&1; then
    terraform -chdir="$copy/terraform" fmt -check -recursive
    terraform -chdir="$copy/terraform" test
else
    echo "terraform: skipped, since there is no Terraform or no AWS provider here:" >&2
    grep -m1 -E 'Error|not found' "$copy/init.log" >&2 || true
fi
