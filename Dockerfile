# The image of Berth: berth-scheduler, berth-controller and berth as static programs, and nothing
# else. There is no shell, no package manager and no writable file, and the user is not root.
#
#   make image PLATFORMS=linux/amd64,linux/arm64
#
# The compiler runs on the platform of the builder and compiles for the platform of the image, so
# that no emulation is needed.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
# The modules are downloaded again only if a go.mod changes.
COPY go.mod go.sum ./
COPY kube/go.mod kube/go.sum kube/
RUN go mod download && cd kube && go mod download
COPY . .
# The builder sets these to the platform of the image.
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
ARG COMMIT=unknown
RUN TARGETOS=$TARGETOS TARGETARCH=$TARGETARCH VERSION=$VERSION COMMIT=$COMMIT hack/image/build.sh /out

FROM scratch
ARG VERSION=unknown
LABEL org.opencontainers.image.title="Berth" \
      org.opencontainers.image.source="https://github.com/berth-project/berth" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
# Certificates of public authorities, for collectors and registries that are reached by TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ /
USER 65532:65532
# The Deployments of the chart name the program. Without a command, the version is printed.
CMD ["/berth", "version"]
