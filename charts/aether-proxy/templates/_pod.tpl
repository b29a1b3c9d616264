{{- define "aether-proxy.pod" -}}
{{- $hot := .Values.proxy.hotRestart -}}
serviceAccountName: {{ include "aether-proxy.serviceAccountName" . }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ int .Values.terminationGracePeriodSeconds }}
hostNetwork: {{ .Values.hostNetwork }}
dnsPolicy: {{ default (ternary "ClusterFirstWithHostNet" "ClusterFirst" .Values.hostNetwork) .Values.dnsPolicy }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" }}
{{- with index $.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ int .Values.runAsUser }}
  runAsGroup: {{ int .Values.runAsUser }}
  seccompProfile:
    type: RuntimeDefault
  {{- with .Values.seLinuxOptions }}
  seLinuxOptions:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if $hot.enabled }}
initContainers:
  {{- include "aether-proxy.initContainers" . | nindent 2 }}
{{- end }}
containers:
  {{- if $hot.enabled }}
  {{- include "aether-proxy.supervised" . | nindent 2 }}
  {{- else }}
  {{- include "aether-proxy.plain" . | nindent 2 }}
  {{- end }}
    volumeMounts:
      - {name: config, mountPath: /etc/envoy, readOnly: true}
      - {name: run, mountPath: /var/run/aether-proxy}
      {{- if $hot.enabled }}
      - {name: programs, mountPath: /opt/aether, readOnly: true}
      - {name: shm, mountPath: /dev/shm}
      {{- end }}
      {{- if $hot.crossPod }}
      - {name: state, mountPath: /run/aether/hotrestart}
      {{- end }}
      {{- if $hot.binary.volume }}
      - {name: binary, mountPath: /opt/envoy, readOnly: true}
      {{- end }}
      {{- with .Values.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  {{- include "aether-proxy.volumes" . | nindent 2 }}
{{- end -}}

{{- define "aether-proxy.initContainers" -}}
{{- $image := .Values.agent.image -}}
{{- $reference := include "aether-proxy.image" (dict "image" $image "tag" (default .Chart.AppVersion $image.tag)) -}}
- name: install
  image: {{ $reference }}
  imagePullPolicy: {{ $image.pullPolicy }}
  command: [/usr/local/bin/agent]
  args:
    - proxy-supervisor
    - --install-path=/opt/aether/supervisor
    - --install-readiness-path=/opt/aether/proxy-ready
  resources:
    {{- toYaml .Values.initResources | nindent 4 }}
  securityContext:
    {{- include "aether-proxy.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: programs, mountPath: /opt/aether}
{{- if .Values.proxy.hotRestart.crossPod }}
# Root, because the kubelet makes host directories root's; it may change owners and nothing else.
- name: directories
  image: {{ $reference }}
  imagePullPolicy: {{ $image.pullPolicy }}
  command: [/usr/local/bin/agent]
  args:
    - private-directories
    - --owner={{ int .Values.runAsUser }}
    - /run/aether/hotrestart
    - /dev/shm
  resources:
    {{- toYaml .Values.initResources | nindent 4 }}
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    runAsGroup: 0
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [CHOWN]
  volumeMounts:
    - {name: shm, mountPath: /dev/shm}
    - {name: state, mountPath: /run/aether/hotrestart}
{{- end }}
{{- end -}}

{{- define "aether-proxy.supervised" -}}
{{- $hot := .Values.proxy.hotRestart -}}
{{- $t := include "aether-proxy.times" . | fromJson -}}
- name: envoy
  image: {{ include "aether-proxy.image" (dict "image" .Values.image "tag" .Values.image.tag) }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [/opt/aether/supervisor]
  args:
    - proxy-supervisor
    - --config=/etc/envoy/envoy.yaml
    - --envoy-path={{ ternary (printf "/opt/envoy/%s" $hot.binary.path) .Values.proxy.envoyPath (not (empty $hot.binary.volume)) }}
    - --base-id={{ include "aether-proxy.baseId" . }}
    - --state-dir={{ include "aether-proxy.stateDir" . }}
    {{- if include "aether-proxy.adminPerEpoch" . }}
    - --admin-per-epoch
    {{- end }}
    - --drain-time={{ $t.drain }}s
    - --parent-shutdown-time={{ $t.limit }}s
    {{- if $hot.crossPod }}
    - --successor-wait={{ $t.wait }}s
    {{- end }}
    - --grace-period={{ $t.grace }}s
    - --handoff-deadline={{ int $hot.handoffDeadlineSeconds }}s
    - --log-level={{ $hot.logLevel }}
    {{- with .Values.proxy.concurrency }}
    - --concurrency={{ int . }}
    {{- end }}
    {{- with .Values.otlpEndpoint }}
    - --otlp-endpoint={{ . }}
    {{- end }}
    {{- range $hot.extraArgs }}
    - {{ . | quote }}
    {{- end }}
    - --
    - -l
    - {{ .Values.proxy.logLevel }}
    {{- with include "aether-proxy.nodeNamed" . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- range .Values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- include "aether-proxy.container" . | nindent 2 }}
  readinessProbe:
    # This pod's own marker: two pods in one network namespace can't be told apart by any port.
    exec:
      command: [/opt/aether/proxy-ready, /var/run/aether-proxy/ready]
    periodSeconds: 2
    timeoutSeconds: 2
    failureThreshold: 3
{{- end -}}

{{- define "aether-proxy.plain" -}}
- name: envoy
  image: {{ include "aether-proxy.image" (dict "image" .Values.image "tag" .Values.image.tag) }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [{{ .Values.proxy.envoyPath }}]
  args:
    - -c
    - /etc/envoy/envoy.yaml
    # Or every Envoy of the node's network namespace would claim base-id 0.
    - --disable-hot-restart
    - -l
    - {{ .Values.proxy.logLevel }}
    {{- with include "aether-proxy.nodeNamed" . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.proxy.concurrency }}
    - --concurrency
    - {{ int . | quote }}
    {{- end }}
    {{- range .Values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- include "aether-proxy.container" . | nindent 2 }}
  {{- if and .Values.stats.enabled (not .Values.existingConfigMap) }}
  readinessProbe:
    httpGet:
      {{- if .Values.hostNetwork }}
      host: {{ ternary "127.0.0.1" .Values.stats.address (eq .Values.stats.address "0.0.0.0") }}
      {{- end }}
      port: {{ int .Values.stats.port }}
      path: /ready
    periodSeconds: 2
    timeoutSeconds: 2
    failureThreshold: 3
  {{- end }}
{{- end -}}

{{- define "aether-proxy.container" -}}
env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  {{- /* The heartbeat and the telemetry name the pod. A name that is there twice is refused by server-side apply. */}}
  {{- $named := false }}
  {{- range .Values.env }}{{ if eq (toString .name) "POD_NAME" }}{{ $named = true }}{{ end }}{{ end }}
  {{- if and .Values.proxy.hotRestart.enabled (not $named) }}
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.ports }}
ports:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "aether-proxy.restricted" . | nindent 2 }}
{{- end -}}

{{- define "aether-proxy.volumes" -}}
{{- $hot := .Values.proxy.hotRestart -}}
- name: config
  configMap:
    name: {{ include "aether-proxy.configMapName" . }}
- name: run
  emptyDir: {}
{{- if $hot.enabled }}
- name: programs
  emptyDir: {}
- name: shm
  {{- if $hot.crossPod }}
  hostPath:
    path: {{ include "aether-proxy.hostDirectory" . }}/shm
    type: DirectoryOrCreate
  {{- else }}
  emptyDir:
    medium: Memory
    sizeLimit: {{ $hot.shmSizeLimit }}
  {{- end }}
{{- end }}
{{- if $hot.crossPod }}
- name: state
  hostPath:
    path: {{ include "aether-proxy.hostDirectory" . }}/state
    type: DirectoryOrCreate
{{- end }}
{{- with $hot.binary.volume }}
- name: binary
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
