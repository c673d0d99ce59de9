#!/usr/bin/env bash
# build.sh builds the programs of a Kubernetes control plane for tests into bin/kube, from
# the modules that hack/kube/go.mod lists. Arguments are the names of the programs to
# build; without arguments all are built. A program that was built from the same go.mod,
# go.sum, build script and Go version is not built again. Beside kwok, the file
# kwok-stages.yaml is written, which describes to kwok how nodes and pods change.
set -euo pipefail

GO=${GO:-go}
programs=(etcd kube-apiserver kwok kube-controller-manager kube-scheduler kubectl lws-manager)

cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/bin/kube

# package prints the package of a program.
package() {
	case $1 in
	etcd) echo go.etcd.io/etcd/server/v3 ;;
	kwok) echo sigs.k8s.io/kwok/cmd/kwok ;;
	lws-manager) echo sigs.k8s.io/lws/cmd ;;
	kube-apiserver | kube-controller-manager | kube-scheduler | kubectl) echo "k8s.io/kubernetes/cmd/$1" ;;
	*)
		echo "build.sh: unknown program $1; the programs are: ${programs[*]}" >&2
		return 1
		;;
	esac
}

# stages prints the stages of kwok's module that make a node ready, keep it ready by leases,
# and make a pod that is bound to it run, complete (pods of a Job only) and end.
stages() {
	local folder file
	folder=$($GO list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
	for file in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
		pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
		echo ---
		cat "$folder/$file.yaml"
	done
}

# The names are checked before the first build, which may take long.
[ $# -gt 0 ] || set -- "${programs[@]}"
for name in "$@"; do
	package "$name" >/dev/null
done

mkdir -p "$out"
temporary=
trap 'rm -f "$temporary"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Kubernetes reports its version from variables that the linker sets; without them the
# API server reports v0.0.0 and clients that check the version refuse it.
version=$($GO list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
variables=k8s.io/component-base/version
ldflags="-s -w -X $variables.gitVersion=$version -X $variables.gitMajor=$major -X $variables.gitMinor=$minor"

inputs=$({
	cat go.mod go.sum build.sh
	$GO version
	$GO env GOOS GOARCH
} | sha256sum)
inputs=${inputs%% *}

for name in "$@"; do
	binary=$out/$name
	stamp=$out/.$name.stamp
	if [ -x "$binary" ] && { [ "$name" != kwok ] || [ -f "$out/kwok-stages.yaml" ]; } &&
		[ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ]; then
		echo "kube-tools: $name is up to date"
		continue
	fi
	echo "kube-tools: building $name"
	begin=$SECONDS
	temporary=$out/.$name.partial.$$
	rm -f "$stamp"
	CGO_ENABLED=0 $GO build -p 2 -trimpath -ldflags "$ldflags" -o "$temporary" "$(package "$name")"
	mv "$temporary" "$binary"
	if [ "$name" = kwok ]; then
		stages >"$temporary"
		mv "$temporary" "$out/kwok-stages.yaml"
	fi
	echo "$inputs" >"$stamp"
	echo "kube-tools: $name built in $((SECONDS - begin)) s, $(($(stat -c %s "$binary") >> 20)) MiB"
done
