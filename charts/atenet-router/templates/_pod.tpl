{{- define "atenet-router.pod" -}}
serviceAccountName: {{ include "atenet-router.serviceAccountName" . }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ int .Values.terminationGracePeriodSeconds }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
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
initContainers:
  {{- include "atenet-router.install" . | nindent 2 }}
  {{- if .Values.nativeSidecar }}
  {{- include "atenet-router.envoy" . | nindent 2 }}
  {{- end }}
containers:
  {{- include "atenet-router.router" . | nindent 2 }}
  {{- if not .Values.nativeSidecar }}
  {{- include "atenet-router.envoy" . | nindent 2 }}
  {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "atenet-router.configMapName" . }}
  - name: bootstrap
    configMap:
      name: {{ include "atenet-router.fullname" . }}-bootstrap
  # Where router and waiter meet.
  - name: run
    emptyDir: {}
  - name: programs
    emptyDir: {}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "atenet-router.routerImage" -}}
image: {{ include "atenet-router.image" (dict "image" .Values.image "tag" (default .Chart.AppVersion .Values.image.tag)) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "atenet-router.install" -}}
- name: install
  {{- include "atenet-router.routerImage" . | nindent 2 }}
  args: [install-waiter, /opt/atenet/drain-wait]
  resources:
    {{- toYaml .Values.initResources | nindent 4 }}
  securityContext:
    {{- include "atenet-router.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: programs, mountPath: /opt/atenet}
{{- end -}}

{{- define "atenet-router.router" -}}
- name: router
  {{- include "atenet-router.routerImage" . | nindent 2 }}
  args:
    - --config=/etc/atenet
    - --grace-period={{ int .Values.terminationGracePeriodSeconds }}s
    {{- range $flag, $key := dict "drain-delay" "delaySeconds" "envoy-drain-window" "windowSeconds" "drain-timeout" "timeoutSeconds" }}
    {{- $seconds := index $.Values.drain $key }}
    {{- if not (kindIs "invalid" $seconds) }}
    - --{{ $flag }}={{ int $seconds }}s
    {{- end }}
    {{- end }}
    {{- with .Values.drain.ignoreListeners }}
    - {{ printf "--ignore-listeners=%s" . | quote }}
    {{- end }}
    - --log-level={{ .Values.logLevel }}
    {{- with .Values.otlpEndpoint }}
    - --otlp-endpoint={{ . }}
    {{- end }}
    {{- range .Values.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- with .Values.env }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - {name: health, containerPort: 8081}
  # 503 from the first moment of a drain; what is parked and running goes on.
  readinessProbe:
    httpGet: {path: /readyz, port: health}
    periodSeconds: 2
    timeoutSeconds: 2
    failureThreshold: 3
  # 200 through the whole drain: a pod that ends must not be restarted.
  livenessProbe:
    httpGet: {path: /healthz, port: health}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  {{- with .Values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "atenet-router.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: config, mountPath: /etc/atenet, readOnly: true}
    - {name: run, mountPath: /var/run/atenet}
{{- end -}}

{{- define "atenet-router.envoy" -}}
- name: envoy
  image: {{ include "atenet-router.image" (dict "image" .Values.envoy.image "tag" .Values.envoy.image.tag) }}
  imagePullPolicy: {{ .Values.envoy.image.pullPolicy }}
  {{- if .Values.nativeSidecar }}
  restartPolicy: Always
  {{- end }}
  command: [{{ .Values.envoy.path }}]
  args:
    - -c
    - /etc/envoy/envoy.yaml
    - --disable-hot-restart
    - -l
    - {{ .Values.envoy.logLevel }}
    {{- with .Values.envoy.concurrency }}
    - --concurrency
    - {{ int . | quote }}
    {{- end }}
    {{- range .Values.envoy.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  # Holds SIGTERM back until the router has drained this Envoy, and tells the router that the pod is ending.
  lifecycle:
    preStop:
      exec:
        command: [/opt/atenet/drain-wait, --deadline, {{ include "atenet-router.waiterDeadline" . }}s]
  {{- with .Values.envoy.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "atenet-router.restricted" . | nindent 4 }}
  volumeMounts:
    - {name: bootstrap, mountPath: /etc/envoy, readOnly: true}
    - {name: run, mountPath: /var/run/atenet, readOnly: true}
    - {name: programs, mountPath: /opt/atenet, readOnly: true}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
