#!/usr/bin/env bash
# build.sh builds the programs of the image into the folder that it is given: berth, and the programs
# of the module kube/ that run in a cluster. TARGETOS and TARGETARCH name the platform; VERSION
# and COMMIT are what `berth version` prints. The Dockerfile runs it.
set -euo pipefail

[ $# = 1 ] || {
	echo "usage: build.sh FOLDER" >&2
	exit 2
}
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."

export CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH:-$(${GO:-go} env GOARCH)}
package=github.com/berth-project/berth/command
ldflags="-s -w -X $package.Version=${VERSION:-unknown} -X $package.Commit=${COMMIT:-unknown}"

${GO:-go} build -trimpath -buildvcs=false -ldflags "$ldflags" -o "$out/berth" ./cmd/berth
cd kube
for program in cmd/berth-*/; do
	program=$(basename "$program")
	${GO:-go} build -trimpath -buildvcs=false -ldflags "$ldflags" -o "$out/$program" "./cmd/$program"
done
