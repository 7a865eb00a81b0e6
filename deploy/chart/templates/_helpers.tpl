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

{{/* Scheme of the hops between components. */}}
{{- define "longshore.scheme" -}}
{{- ternary "http" "https" (eq .Values.tls.mode "none") -}}
{{- end -}}

{{/* Secret with the certificate of a component; takes (list root component). */}}
{{- define "longshore.tlsSecret" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- get $root.Values.tls.secrets $component | default (printf "%s-%s-tls" (include "longshore.name" $root) $component) -}}
{{- end -}}

{{/* Identity of a component, as its certificate carries it; takes (list root component). */}}
{{- define "longshore.tlsIdentity" -}}
{{- $root := index . 0 -}}
{{- $settings := $root.Values.settings -}}
{{- $place := printf "%s/%s" $settings.accountId $settings.region -}}
{{- get (dict
  "scheduler" "longshore://scheduler"
  "actuator" (printf "longshore://actuator/%s" $place)
  "watcher" (printf "longshore://cluster/%s/%s" $place (include "longshore.setting" (list $root "clusterName")))
) (index . 1) -}}
{{- end -}}

{{/* Hosts that a component answers at, for clients that look at names; takes (list root component). */}}
{{- define "longshore.tlsHosts" -}}
{{- $root := index . 0 -}}
{{- if eq (index . 1) "scheduler" -}}
{{- $service := printf "%s-scheduler.%s" (include "longshore.name" $root) $root.Release.Namespace -}}
{{- printf "%s %s.svc" $service $service }}{{ range $root.Values.planning.hosts }} {{ . }}{{ end -}}
{{- else if eq (index . 1) "actuator" -}}
{{- printf "*.%s-actuator.%s.svc" (include "longshore.name" $root) $root.Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/*
Components that run here and have a certificate, as words. In standalone mode the three speak within
the process; the certificate is that of the scheduler, for those who have plans computed.
*/}}
{{- define "longshore.tlsComponents" -}}
{{- if ne .Values.tls.mode "none" -}}
{{- if ne .Values.mode "split" -}}
{{- if .Values.planning.enabled }}scheduler{{ end -}}
{{- else -}}
watcher
{{- if not .Values.scheduler.endpoint }} scheduler{{ end -}}
{{- if .Values.actuator.enabled }} actuator{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What other clients may do, as the programs read it. */}}
{{- define "longshore.clients" -}}
{{- $clients := list -}}
{{- range $name, $rights := .Values.planning.clients -}}
{{- $clients = append $clients (printf "%s=%s" $name (join "+" $rights)) -}}
{{- end -}}
{{- join "," $clients -}}
{{- end -}}

{{/* Endpoints of all actuators: the given ones, then those that run here. */}}
{{- define "longshore.actuatorEndpoints" -}}
{{- $endpoints := .Values.actuator.endpoints -}}
{{- if .Values.actuator.enabled -}}
{{- $name := printf "%s-actuator" (include "longshore.name" .) -}}
{{- range $index := until (int .Values.actuator.replicas) -}}
{{- $host := printf "%s-%d.%s.%s.svc" $name $index $name $.Release.Namespace -}}
{{- $endpoints = append $endpoints (printf "%s://%s:7402" (include "longshore.scheme" $) $host) -}}
{{- end -}}
{{- end -}}
{{- join "," $endpoints -}}
{{- end -}}

{{- define "longshore.schedulerEndpoint" -}}
{{- $name := include "longshore.name" . -}}
{{- $here := printf "%s://%s-scheduler.%s.svc:7400" (include "longshore.scheme" .) $name .Release.Namespace -}}
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
  "LONGSHORE_SURGE" (ternary "true" "" $values.settings.surge)
  "LONGSHORE_DEFAULT_INSTANCE_PROFILE" (include "longshore.setting" (list $root "defaultInstanceProfile")) -}}
{{- $env := dict
  "LONGSHORE_LOG" $values.logLevel
  "LONGSHORE_LOG_FORMAT" $values.telemetry.logFormat
  "LONGSHORE_METRICS_LISTEN" (printf "0.0.0.0:%d" (int $values.controller.metrics.port))
  "OTEL_EXPORTER_OTLP_ENDPOINT" $values.telemetry.otlpEndpoint -}}
{{- if or (eq $values.tls.mode "none") $values.actuator.etcd.plaintext -}}
{{- $env = set $env "LONGSHORE_ALLOW_PLAINTEXT" (ternary "true" "" (eq $values.mode "split")) -}}
{{- end -}}
{{- $component := ternary "scheduler" $program (eq $program "up") -}}
{{- if has $component (splitList " " (include "longshore.tlsComponents" $root)) -}}
{{- $env = merge $env (dict
  "LONGSHORE_TLS_CERT" "/etc/longshore/tls/tls.crt"
  "LONGSHORE_TLS_KEY" "/etc/longshore/tls/tls.key"
  "LONGSHORE_TLS_CA" "/etc/longshore/tls/ca.crt") -}}
{{- end -}}
{{- if ne $program "watcher" -}}
{{- $env = set $env "LONGSHORE_CLIENTS" (include "longshore.clients" $root) -}}
{{- end -}}
{{- if ne $program "scheduler" -}}
{{- $env = set $env "LONGSHORE_REGION" $values.settings.region -}}
{{- end -}}
{{- if has $program (list "up" "watcher") -}}
{{- $env = merge $env $cluster -}}
{{- /* What reading a large cluster took goes back to the system at once. */ -}}
{{- $env = set $env "MIMALLOC_PURGE_DELAY" "0" -}}
{{- end -}}
{{- if eq $program "watcher" -}}
{{- $env = set $env "LONGSHORE_SCHEDULER_ENDPOINT" (include "longshore.schedulerEndpoint" $root) -}}
{{- else if eq $program "scheduler" -}}
{{- $env = set $env "LONGSHORE_LISTEN" "0.0.0.0:7400" -}}
{{- $env = set $env "LONGSHORE_ACTUATOR_ENDPOINTS" (include "longshore.actuatorEndpoints" $root) -}}
{{- else if eq $program "actuator" -}}
{{- $etcd := $values.actuator.etcd -}}
{{- $env = merge $env (dict
  "LONGSHORE_LISTEN" "0.0.0.0:7402"
  "LONGSHORE_ETCD_ENDPOINTS" (join "," $values.actuator.etcdEndpoints)) -}}
{{- if $values.actuator.policy -}}
{{- $env = set $env "LONGSHORE_POLICY" "/etc/longshore/policy/policy.yaml" -}}
{{- end -}}
{{- if $etcd.secret -}}
{{- $env = set $env "LONGSHORE_ETCD_CA" "/etc/longshore/etcd/ca.crt" -}}
{{- end -}}
{{- if $etcd.certificate -}}
{{- $env = set $env "LONGSHORE_ETCD_CERT" "/etc/longshore/etcd/tls.crt" -}}
{{- $env = set $env "LONGSHORE_ETCD_KEY" "/etc/longshore/etcd/tls.key" -}}
{{- end -}}
{{- if $etcd.user -}}
{{- $env = set $env "LONGSHORE_ETCD_USER" $etcd.user -}}
{{- $env = set $env "LONGSHORE_ETCD_PASSWORD_FILE" "/etc/longshore/etcd/password" -}}
{{- end -}}
{{- else if and (eq $program "up") $values.planning.enabled -}}
{{- $env = set $env "LONGSHORE_LISTEN" "0.0.0.0:7400" -}}
{{- $env = set $env "LONGSHORE_SERVICE" (printf "%s-scheduler" (include "longshore.name" $root)) -}}
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
{{- if and (eq $program "up") $values.planning.enabled }}
- name: LONGSHORE_ADDRESS
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
{{- end }}
{{- else if eq $program "actuator" }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: LONGSHORE_ADVERTISE
  value: {{ include "longshore.scheme" $root }}://$(POD_NAME).{{ include "longshore.name" $root }}-actuator.{{ $root.Release.Namespace }}.svc:7402
{{- end }}
{{- with $values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What speaks at a gRPC port, for those who look at Services. */}}
{{- define "longshore.appProtocol" -}}
{{- ternary "kubernetes.io/h2c" "https" (eq .Values.tls.mode "none") -}}
{{- end -}}

{{/* Metadata of what looks after certificates; takes (list root annotations). */}}
{{- define "longshore.certificatesMetadata" -}}
{{- include "longshore.metadata" (list (index . 0) "certificates") -}}
{{- with index . 1 }}
{{- if not (index $ 0).Values.additionalAnnotations }}
annotations:
{{- end }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Pod that looks after certificates; takes (list root account command). */}}
{{- define "longshore.certificatesPod" -}}
{{- $root := index . 0 -}}
metadata:
  labels:
    {{- include "longshore.labels" $root | nindent 4 }}
    app.kubernetes.io/component: certificates
spec:
  restartPolicy: Never
  serviceAccountName: {{ index . 1 }}
  automountServiceAccountToken: true
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
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
  containers:
    - name: certificates
      image: {{ include "longshore.image" (list $root "up") }}
      imagePullPolicy: {{ $root.Values.imagePullPolicy }}
      command: {{ toJson (index . 2) }}
      resources:
        requests:
          cpu: 10m
          memory: 32Mi
        limits:
          memory: 64Mi
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
{{- end -}}

{{/* The image of a program, as in longshore.env; takes (list root program). */}}
{{- define "longshore.image" -}}
{{- $root := index . 0 -}}
{{- $program := index . 1 -}}
{{- $image := $root.Values.controller.image -}}
{{- $alone := eq $program "up" -}}
{{- $digest := $alone | ternary $image.digest (get (get $root.Values $program | default dict) "digest") -}}
{{- $image.repository }}{{ if not $alone }}-{{ $program }}{{ end }}:{{ $image.tag | default $root.Chart.AppVersion -}}
{{- with $digest }}@{{ . }}{{ end -}}
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
      image: {{ include "longshore.image" (list $root .program) }}
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
      {{- $volumes := include "longshore.volumes" . | fromYaml }}
      {{- with concat $volumes.mounts $root.Values.controller.extraVolumeMounts }}
      volumeMounts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- with concat $volumes.volumes $root.Values.extraVolumes }}
  volumes:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Secrets and policy of a component's pod, as volumes and where they are mounted; takes the dict of longshore.pod. */}}
{{- define "longshore.volumes" -}}
{{- $component := ternary "scheduler" .program (eq .program "up") -}}
{{- $volumes := list -}}
{{- $mounts := list -}}
{{- if has $component (splitList " " (include "longshore.tlsComponents" .root)) -}}
{{- $secret := include "longshore.tlsSecret" (list .root $component) -}}
{{- $volumes = append $volumes (dict "name" "tls" "secret" (dict "secretName" $secret "defaultMode" 288)) -}}
{{- $mounts = append $mounts (dict "name" "tls" "mountPath" "/etc/longshore/tls" "readOnly" true) -}}
{{- end -}}
{{- if and (eq .program "actuator") .root.Values.actuator.etcd.secret -}}
{{- $secret := .root.Values.actuator.etcd.secret -}}
{{- $volumes = append $volumes (dict "name" "etcd" "secret" (dict "secretName" $secret "defaultMode" 288)) -}}
{{- $mounts = append $mounts (dict "name" "etcd" "mountPath" "/etc/longshore/etcd" "readOnly" true) -}}
{{- end -}}
{{- if and (eq .program "actuator") .root.Values.actuator.policy -}}
{{- $name := printf "%s-actuator-policy" (include "longshore.name" .root) -}}
{{- $volumes = append $volumes (dict "name" "policy" "configMap" (dict "name" $name)) -}}
{{- $mounts = append $mounts (dict "name" "policy" "mountPath" "/etc/longshore/policy" "readOnly" true) -}}
{{- end -}}
{{- toYaml (dict "volumes" $volumes "mounts" $mounts) -}}
{{- end -}}
