{{/* Name of everything; see fullnameOverride in values.yaml. */}}
{{- define "longshore.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "longshore.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "longshore.name" .) -}}
{{- end -}}

{{/* Service account that speaks to AWS: the only one in standalone mode, the actuator's in split mode. */}}
{{- define "longshore.cloudServiceAccount" -}}
{{- if eq .Values.mode "split" -}}
{{ include "longshore.name" . }}-actuator
{{- else -}}
{{ include "longshore.serviceAccount" . }}
{{- end -}}
{{- end -}}

{{- define "longshore.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes (list root component). */}}
{{- define "longshore.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Takes (list root component): metadata of an object of a component, without its name. */}}
{{- define "longshore.metadata" -}}
{{- $root := index . 0 -}}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "longshore.labels" $root | nindent 2 }}
  app.kubernetes.io/component: {{ index . 1 }}
{{- with $root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Annotations are strings: a value that came in as a boolean is quoted like any other. */}}
{{- define "longshore.annotations" -}}
{{- range $key, $value := . }}
{{ $key | quote }}: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* A setting by name; the first chart's settings.aws.* are read where the new place is empty. */}}
{{- define "longshore.setting" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $legacyName := eq $name "interruptionQueue" | ternary "interruptionQueueName" $name -}}
{{- $legacy := $root.Values.settings.aws | default dict -}}
{{- get $root.Values.settings $name | default (get $legacy $legacyName) -}}
{{- end -}}

{{/* Endpoints of all actuators: the given ones, then those that run here. */}}
{{- define "longshore.actuatorEndpoints" -}}
{{- $endpoints := .Values.actuator.endpoints -}}
{{- if .Values.actuator.enabled -}}
{{- $name := printf "%s-actuator" (include "longshore.name" .) -}}
{{- range $index := until (int .Values.actuator.replicas) -}}
{{- $host := printf "%s-%d.%s.%s.svc" $name $index $name $.Release.Namespace -}}
{{- $endpoints = append $endpoints (printf "http://%s:7402" $host) -}}
{{- end -}}
{{- end -}}
{{- join "," $endpoints -}}
{{- end -}}

{{- define "longshore.schedulerEndpoint" -}}
{{- $here := printf "http://%s-scheduler.%s.svc:7400" (include "longshore.name" .) .Release.Namespace -}}
{{- .Values.scheduler.endpoint | default $here -}}
{{- end -}}

{{/*
The environment of a program: the one place that knows what each of them reads. Takes
(list root program), where program is up, watcher, scheduler or actuator. Empty entries are left out.
*/}}
{{- define "longshore.env" -}}
{{- $root := index . 0 -}}
{{- $program := index . 1 -}}
{{- $values := $root.Values -}}
{{- $cluster := dict
  "LONGSHORE_CLUSTER_NAME" (include "longshore.setting" (list $root "clusterName"))
  "LONGSHORE_CLUSTER_ENDPOINT" (include "longshore.setting" (list $root "clusterEndpoint"))
  "LONGSHORE_INTERRUPTION_QUEUE" (include "longshore.setting" (list $root "interruptionQueue"))
  "LONGSHORE_ACCOUNT_ID" $values.settings.accountId
  "LONGSHORE_PLACEMENT" $values.settings.placement
  "LONGSHORE_DEFAULT_INSTANCE_PROFILE" (include "longshore.setting" (list $root "defaultInstanceProfile")) -}}
{{- $env := dict
  "LONGSHORE_LOG" $values.logLevel
  "LONGSHORE_LOG_FORMAT" $values.telemetry.logFormat
  "LONGSHORE_METRICS_LISTEN" (printf "0.0.0.0:%d" (int $values.controller.metrics.port))
  "OTEL_EXPORTER_OTLP_ENDPOINT" $values.telemetry.otlpEndpoint -}}
{{- if ne $program "scheduler" -}}
{{- $env = set $env "LONGSHORE_REGION" $values.settings.region -}}
{{- end -}}
{{- if has $program (list "up" "watcher") -}}
{{- $env = merge $env $cluster -}}
{{- end -}}
{{- if eq $program "watcher" -}}
{{- $env = set $env "LONGSHORE_SCHEDULER_ENDPOINT" (include "longshore.schedulerEndpoint" $root) -}}
{{- else if eq $program "scheduler" -}}
{{- $env = set $env "LONGSHORE_LISTEN" "0.0.0.0:7400" -}}
{{- $env = set $env "LONGSHORE_ACTUATOR_ENDPOINTS" (include "longshore.actuatorEndpoints" $root) -}}
{{- else if eq $program "actuator" -}}
{{- $env = set $env "LONGSHORE_LISTEN" "0.0.0.0:7402" -}}
{{- $env = set $env "LONGSHORE_ETCD_ENDPOINTS" (join "," $values.actuator.etcdEndpoints) -}}
{{- end -}}
{{- if has $program (list "up" "scheduler") -}}
{{- $planning := $values.settings.planning -}}
{{- $env = merge $env (dict
  "LONGSHORE_NODE_FEE" $planning.nodeFee
  "LONGSHORE_INTERRUPTION_COST" $planning.interruptionCost
  "LONGSHORE_SPOT_INTERRUPTIONS" $planning.spotInterruptions
  "LONGSHORE_FAMILY_PERFORMANCE" $planning.familyPerformance
  "LONGSHORE_MIN_VALUES_POLICY" $planning.minValuesPolicy
  "LONGSHORE_PREFERENCE_PREMIUM" $planning.preferencePremium) -}}
{{- end -}}
{{- range $name, $value := $env }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if has $program (list "up" "watcher") }}
- name: LONGSHORE_IDENTITY
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: LONGSHORE_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- else if eq $program "actuator" }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: LONGSHORE_ADVERTISE
  value: http://$(POD_NAME).{{ include "longshore.name" $root }}-actuator.{{ $root.Release.Namespace }}.svc:7402
{{- end }}
{{- with $values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "longshore.image" -}}
{{- with .Values.controller.image -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/*
The pod of a component. Takes a dict: root, component, program (see longshore.env), command (list),
account, token (whether it speaks to the API server), port (of gRPC, 0 for none), resources.
*/}}
{{- define "longshore.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "longshore.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $root.Values.podAnnotations }}
  annotations:
    {{- include "longshore.annotations" . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ .token }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  priorityClassName: {{ $root.Values.priorityClassName | quote }}
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds | default 30 }}
  dnsPolicy: {{ $root.Values.dnsPolicy }}
  hostNetwork: {{ $root.Values.hostNetwork }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $root.Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range $root.Values.topologySpreadConstraints }}
    - {{ toYaml . | nindent 6 | trim }}
      {{- if not .labelSelector }}
      labelSelector:
        matchLabels:
          {{- include "longshore.selector" (list $root $.component) | nindent 10 }}
      {{- end }}
    {{- end }}
  {{- end }}
  containers:
    - name: longshore
      image: {{ include "longshore.image" $root }}
      imagePullPolicy: {{ $root.Values.imagePullPolicy }}
      command: {{ toJson .command }}
      env:
        {{- include "longshore.env" (list $root .program) | trim | nindent 8 }}
        {{- if eq .program "scheduler" }}
        - name: LONGSHORE_MEMORY_MIB
          valueFrom:
            resourceFieldRef:
              resource: limits.memory
              divisor: 1Mi
        {{- end }}
      {{- with $root.Values.controller.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: metrics
          containerPort: {{ $root.Values.controller.metrics.port }}
        {{- if .port }}
        - name: grpc
          containerPort: {{ .port }}
        {{- end }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: metrics
        initialDelaySeconds: 30
        timeoutSeconds: 30
      readinessProbe:
        httpGet:
          path: /readyz
          port: metrics
        initialDelaySeconds: 5
        timeoutSeconds: 30
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with .resources | default $root.Values.controller.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.controller.extraVolumeMounts }}
      volumeMounts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- with $root.Values.extraVolumes }}
  volumes:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
