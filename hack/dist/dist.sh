#!/usr/bin/env bash
# Builds what a release consists of into dist/: for each program and platform an archive with a
# static binary, README and LICENSE, and the list of what the binary is made of (CycloneDX); the
# Helm chart as a package, and the manifest for kubectl; and the SHA-256 sums of all of these.
# Equal commits give equal binaries. PLATFORMS lists the platforms, if not all are to be built.
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go}
version=${VERSION:-$(git describe --tags --always --dirty)}
commit=$(git rev-parse HEAD)
time=$(git log -1 --format=%ct)
package=github.com/berth-project/berth/command
root=$PWD
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}"
rm -rf dist
mkdir -p dist

# pack builds the program $1 of the module in folder $2 for the platform $3.
pack() {
  local program=$1 module=$2 os=${3%/*} arch=${3#*/}
  local name=${program}_${version}_${os}_${arch} binary=$program
  if [ "$os" = windows ]; then binary=$program.exe; fi
  local folder=$root/dist/$name
  mkdir "$folder"
  (cd "$module" && CGO_ENABLED=0 GOOS=$os GOARCH=$arch $GO build -trimpath -buildvcs=false \
    -ldflags "-s -w -X $package.Version=$version -X $package.Commit=$commit" -o "$folder/$binary" "./cmd/$program")
  cp README.md LICENSE "$folder"
  $GO tool -modfile=hack/dist/go.mod cyclonedx-gomod bin -json -noserial -version "$version" \
    -output "dist/$name.cdx.json" "$folder/$binary" 2>/dev/null
  if [ "$os" = windows ]; then
    (cd dist && zip -qrX "$name.zip" "$name")
  else
    tar -C dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" -czf "dist/$name.tar.gz" "$name"
  fi
  rm -rf "$folder"
  echo "$name"
}

for platform in "${platforms[@]}"; do
  pack berth . "$platform"
  for folder in kube/cmd/*/; do
    program=$(basename "$folder")
    # The programs that run in a cluster are for Linux. kubectl-berth runs where kubectl does.
    if [[ $platform = linux/* || $program = kubectl-* ]]; then
      pack "$program" kube "$platform"
    fi
  done
done

# The chart and the manifest name the image of the version in Chart.yaml.
app=$(sed -n 's/^appVersion: *//p' charts/berth/Chart.yaml)
if [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ && $version != "v$app" ]]; then
  echo "dist.sh: appVersion in charts/berth/Chart.yaml is $app, and the version is $version" >&2
  exit 1
fi
hack/helm/build.sh
bin/kube/helm package charts/berth --destination dist
cp deploy/berth.yaml dist/berth.yaml
(cd dist && sha256sum -- * > checksums.txt)
