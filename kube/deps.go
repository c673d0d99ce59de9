//go:build deps

// Package kube lists the packages that the module uses, until code imports them.
package kube

import (
	_ "github.com/berth-project/berth/engine"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/spf13/cobra"
	_ "go.uber.org/goleak"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-helpers/resource"
	_ "k8s.io/dynamic-resource-allocation/structured"
	_ "k8s.io/kube-scheduler/framework"
	_ "k8s.io/kubernetes/pkg/scheduler"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	_ "k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
)
