#!/usr/bin/env bash
# Builds what a release consists of into dist/: for each platform an archive with a static
# binary, README and LICENSE, and the list of what the binary is made of (CycloneDX); and
# the SHA-256 sums of all of these. Equal commits give equal binaries.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${VERSION:-$(git describe --tags --always --dirty)}
commit=$(git rev-parse HEAD)
time=$(git log -1 --format=%ct)
package=github.com/berth-project/berth/command
rm -rf dist
mkdir -p dist
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do
  os=${platform%/*} arch=${platform#*/}
  name=berth_${version}_${os}_${arch}
  binary=berth
  if [ "$os" = windows ]; then binary=berth.exe; fi
  folder=dist/$name
  mkdir "$folder"
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch ${GO:-go} build -trimpath -buildvcs=false \
    -ldflags "-s -w -X $package.Version=$version -X $package.Commit=$commit" -o "$folder/$binary" ./cmd/berth
  cp README.md LICENSE "$folder"
  ${GO:-go} tool -modfile=hack/dist/go.mod cyclonedx-gomod bin -json -noserial -version "$version" \
    -output "dist/$name.cdx.json" "$folder/$binary" 2>/dev/null
  if [ "$os" = windows ]; then
    (cd dist && zip -qrX "$name.zip" "$name")
  else
    tar -C dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" -czf "dist/$name.tar.gz" "$name"
  fi
  rm -rf "$folder"
  echo "$name"
done
(cd dist && sha256sum -- * > checksums.txt)
