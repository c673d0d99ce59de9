// Package e2e tests berth-scheduler as a process, on a control plane of Kubernetes with the
// nodes of kwok.
package e2e
