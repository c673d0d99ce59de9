package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// members returns the names of the members that are set of a type of which Kubernetes allows one,
// sorted, such as httpGet of a ProbeHandler.
func members(union any) []string {
	text, err := json.Marshal(union)
	if err != nil {
		return nil
	}
	var set map[string]json.RawMessage
	if err := json.Unmarshal(text, &set); err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(set))
}

// replaces reports whether the template sets another member than Berth does.
func replaces(given, own any) bool {
	names := members(given)
	return len(names) > 0 && !slices.Equal(names, members(own))
}

// clearReplaced removes from the template of Berth what the given one replaces, and a merge would
// keep beside it: sources of volumes, variables, and handlers of probes.
func clearReplaced(own, given *corev1.PodSpec) {
	for i := range own.Volumes {
		v := &own.Volumes[i]
		if j := slices.IndexFunc(given.Volumes, func(g corev1.Volume) bool { return g.Name == v.Name }); j >= 0 && replaces(given.Volumes[j].VolumeSource, v.VolumeSource) {
			v.VolumeSource = corev1.VolumeSource{}
		}
	}
	_, server := serverOf(given)
	if server == nil {
		return
	}
	c := &own.Containers[0]
	for i := range c.Env {
		name := c.Env[i].Name
		if slices.ContainsFunc(server.Env, func(g corev1.EnvVar) bool { return g.Name == name }) {
			c.Env[i] = corev1.EnvVar{Name: name}
		}
	}
	for name, p := range probesOf(server) {
		if mine := probesOf(c)[name]; p != nil && mine != nil && replaces(p.ProbeHandler, mine.ProbeHandler) {
			mine.ProbeHandler = corev1.ProbeHandler{}
		}
	}
}

// serverOf returns the container of the server and its number; -1 and nil if there is none.
func serverOf(s *corev1.PodSpec) (int, *corev1.Container) {
	i := slices.IndexFunc(s.Containers, func(c corev1.Container) bool { return c.Name == ContainerName })
	if i < 0 {
		return i, nil
	}
	return i, &s.Containers[i]
}

// probesOf returns the probes of a container by the names of their fields; nil if it has no such
// probe.
func probesOf(c *corev1.Container) map[string]*corev1.Probe {
	return map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe}
}

// checkVolumes reports volumes that the API server would reject because they have several sources.
func checkVolumes(volumes []corev1.Volume) error {
	for i := range volumes {
		if names := members(volumes[i].VolumeSource); len(names) > 1 {
			return templateProblem(fmt.Sprintf("a volume has one source, and this one has %s; keep one", strings.Join(names, " and ")), "spec", "volumes", i)
		}
	}
	return nil
}

// checkHandlers reports what the API server would reject of a container because it has several
// handlers or values. A probe of the server may have no handler: then it keeps that of Berth.
func checkHandlers(c *corev1.Container, at []any) error {
	several := func(names []string, at ...any) error {
		if len(names) < 2 {
			return nil
		}
		return templateProblem(fmt.Sprintf("only one of %s is allowed; keep one", strings.Join(names, " and ")), at...)
	}
	probes := probesOf(c)
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		p, here := probes[name], append(slices.Clone(at), name)
		if p == nil {
			continue
		}
		if len(members(p.ProbeHandler)) == 0 && c.Name != ContainerName {
			return noHandler(here)
		}
		if err := several(members(p.ProbeHandler), here...); err != nil {
			return err
		}
	}
	if l := c.Lifecycle; l != nil {
		for _, x := range []struct {
			name    string
			handler *corev1.LifecycleHandler
		}{{"postStart", l.PostStart}, {"preStop", l.PreStop}} {
			if x.handler == nil {
				continue
			}
			if err := several(members(x.handler), append(slices.Clone(at), "lifecycle", x.name)...); err != nil {
				return err
			}
		}
	}
	for i, e := range c.Env {
		here := append(slices.Clone(at), "env", i)
		if e.ValueFrom == nil {
			continue
		}
		if e.Value != "" {
			return several([]string{"value", "valueFrom"}, here...)
		}
		if err := several(members(e.ValueFrom), append(here, "valueFrom")...); err != nil {
			return err
		}
	}
	return nil
}

// checkProbes reports probes of the merged server that have no handler: Berth sets none, and nor does
// the template. i is the number of the server in the template.
func checkProbes(server *corev1.Container, i int) error {
	probes := probesOf(server)
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		if p := probes[name]; p != nil && len(members(p.ProbeHandler)) == 0 {
			return noHandler([]any{"spec", "containers", i, name})
		}
	}
	return nil
}

func noHandler(at []any) error {
	return templateProblem("Berth sets no such probe, so that it needs a handler; add httpGet, tcpSocket, grpc or exec", at...)
}
