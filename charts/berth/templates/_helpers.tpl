{{/* The names of objects are fixed: a cluster has one Berth, and a second release is refused by
Helm instead of taking over its objects. Templates that describe one program are called with
(dict "root" $ "program" "scheduler"). */}}

{{/* The labels of an object. "labels" are further labels of the object; they take precedence over
commonLabels, so that no key occurs twice. */}}
{{- define "berth.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: berth
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- with merge dict (.labels | default dict) (.root.Values.commonLabels | default dict) }}
{{ toYaml . }}
{{- end }}
{{- if .program }}
{{ include "berth.selector" . }}
{{- else }}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
{{- end }}

{{/* The labels by which Deployments, Services, budgets and policies select the pods of a program.
They never change, since the selector of a Deployment cannot. */}}
{{- define "berth.selector" -}}
app.kubernetes.io/name: berth-{{ .program }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "berth.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The scheduler names as a JSON list: those of the profiles, if the configuration has any. */}}
{{- define "berth.schedulerNames" -}}
{{- $names := list }}
{{- range .Values.scheduler.configuration.profiles }}
{{- $names = append $names .schedulerName }}
{{- end }}
{{- toJson ($names | default .Values.scheduler.names) }}
{{- end }}

{{/* What both programs have in common in the spec of their pods, up to the containers. */}}
{{- define "berth.podSpec" -}}
{{- $values := get .root.Values .program -}}
serviceAccountName: berth-{{ .program }}
automountServiceAccountToken: true
enableServiceLinks: false
priorityClassName: {{ .root.Values.priorityClassName }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: {{ .root.Values.spread.whenUnsatisfiable }}
  labelSelector:
    matchLabels:
      {{- include "berth.selector" . | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- if .root.Values.spread.zones }}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "berth.selector" . | nindent 6 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What both programs have in common in their container. */}}
{{- define "berth.container" -}}
image: {{ include "berth.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
command: [/berth-{{ .program }}]
{{- end }}

{{- define "berth.containerSecurity" -}}
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
resources:
  {{- toYaml (get .root.Values .program).resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The labels of the pods of a program. */}}
{{- define "berth.podLabels" -}}
{{- $values := get .root.Values .program -}}
{{ include "berth.selector" . }}
app.kubernetes.io/part-of: berth
{{- with $values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The annotations of the pods of a program. Both programs read the configuration only at the
start, so that a changed configuration makes new pods. */}}
{{- define "berth.podAnnotations" -}}
{{- $own := dict "kubectl.kubernetes.io/default-container" (printf "berth-%s" .program) }}
{{- with .root.Values.scheduler.configuration }}
{{- $_ := set $own "berth.dev/configuration" (toYaml . | sha256sum | trunc 16) }}
{{- end }}
{{- toYaml (merge dict ((get .root.Values .program).podAnnotations | default dict) $own) }}
{{- end }}
