#!/usr/bin/env bash
# build.sh builds helm into bin/kube, from the module that hack/helm/go.mod names. It is a
# module of its own, because helm needs other versions of libraries that the control plane of
# hack/kube shares with the module kube/. A program that was built from the same go.mod,
# go.sum, build script and Go version is not built again.
set -euo pipefail

GO=${GO:-go}

cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/bin/kube
binary=$out/helm
stamp=$out/.helm.stamp

inputs=$({
	cat go.mod go.sum build.sh
	$GO version
	$GO env GOOS GOARCH
} | sha256sum)
inputs=${inputs%% *}
if [ -x "$binary" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ]; then
	echo "kube-tools: helm is up to date"
	exit 0
fi

# helm reports its version, and renders charts for the version of Kubernetes whose libraries
# it contains, from variables that the linker sets.
version=$($GO list -m -f '{{.Version}}' helm.sh/helm/v3)
IFS=. read -r _ minor _ <<<"$($GO list -m -f '{{.Version}}' k8s.io/client-go)"
helm=helm.sh/helm/v3
ldflags="-s -w -X $helm/internal/version.version=$version"
for package in lint/rules chartutil; do
	ldflags+=" -X $helm/pkg/$package.k8sVersionMajor=1 -X $helm/pkg/$package.k8sVersionMinor=$minor"
done

mkdir -p "$out"
temporary=$out/.helm.partial.$$
trap 'rm -f "$temporary"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
echo "kube-tools: building helm"
begin=$SECONDS
rm -f "$stamp"
CGO_ENABLED=0 $GO build -p 2 -trimpath -ldflags "$ldflags" -o "$temporary" helm.sh/helm/v3/cmd/helm
mv "$temporary" "$binary"
echo "$inputs" >"$stamp"
echo "kube-tools: helm built in $((SECONDS - begin)) s, $(($(stat -c %s "$binary") >> 20)) MiB"
