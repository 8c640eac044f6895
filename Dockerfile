# syntax=docker/dockerfile:1
# The gateway alone in an image: static, without a shell, as a user without rights.
#
#   docker build --build-arg VERSION=v1.2.3 -t stagedoor .
#   docker run -p 8080:8080 -v stagedoor:/data -v ./stagedoor.yaml:/etc/stagedoor.yaml:ro \
#     -e STAGEDOOR_CONFIG=/etc/stagedoor.yaml stagedoor
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=""
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
      go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /stagedoor ./cmd/stagedoor \
 && mkdir -m 700 /data && mkdir -m 1777 /spool

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /stagedoor /stagedoor
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build --chown=65532:65532 /spool /tmp
USER 65532:65532
# The greeting reads "container": its link for the first administrator works on the same machine only.
ENV STAGEDOOR_LISTEN=:8080 STAGEDOOR_DATA=/data container=oci
VOLUME /data
EXPOSE 8080
# Longer than shutdown.grace belongs to docker stop: --time 60.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/stagedoor", "healthcheck"]
ENTRYPOINT ["/stagedoor"]
CMD ["serve"]
