{{- define "aether-proxy.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "aether-proxy.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "aether-proxy.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "aether-proxy.selectorLabels" -}}
app.kubernetes.io/name: {{ include "aether-proxy.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "aether-proxy.labels" -}}
{{ include "aether-proxy.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "aether-proxy.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "aether-proxy.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* An image's reference; a digest wins over a tag. Wants image and tag. */ -}}
{{- define "aether-proxy.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository .tag -}}
{{- end -}}
{{- end -}}

{{- /*
The base-id: 28 bits of a hash, folded into what Envoy can multiply by ten in 32
bits, and never 0, which every Envoy without a base-id has.
*/ -}}
{{- define "aether-proxy.baseId" -}}
{{- $given := int64 .Values.proxy.hotRestart.baseId -}}
{{- if $given -}}
{{- $given -}}
{{- else -}}
{{- $hash := printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 7 -}}
{{- add 1 (mod (int64 (printf "0x%s" $hash)) 214748364) -}}
{{- end -}}
{{- end -}}

{{- define "aether-proxy.hostDirectory" -}}
{{- default (printf "/run/aether/%s/%s" .Release.Namespace .Release.Name) .Values.proxy.hotRestart.hostDirectory -}}
{{- end -}}

{{- /* The supervisor's state directory; extraArgs win, as they do on its command line. */ -}}
{{- define "aether-proxy.stateDir" -}}
{{- $hot := .Values.proxy.hotRestart -}}
{{- $dir := ternary "/run/aether/hotrestart" "/var/run/aether-proxy/hotrestart" $hot.crossPod -}}
{{- range $hot.extraArgs -}}
{{- if hasPrefix "--state-dir=" . -}}{{- $dir = trimPrefix "--state-dir=" . -}}{{- end -}}
{{- end -}}
{{- $dir -}}
{{- end -}}

{{- /*
"true" or nothing: whether each epoch has an admin of its own. From pod to pod it
must: an admin in the old pod's volume can't be asked by the new one. extraArgs
win, and without the relay the supervisor refuses it.
*/ -}}
{{- define "aether-proxy.adminPerEpoch" -}}
{{- $hot := .Values.proxy.hotRestart -}}
{{- $own := $hot.crossPod -}}
{{- range .Values.env -}}
{{- if and (eq (toString .name) "AETHER_RELAY") (regexMatch "^(0|[fF]|false|False|FALSE)$" (toString .value)) -}}{{- $own = false -}}{{- end -}}
{{- end -}}
{{- range $hot.extraArgs -}}
{{- if regexMatch "^--admin-per-epoch(=(1|[tT]|true|True|TRUE))?$" . -}}{{- $own = true -}}{{- end -}}
{{- if regexMatch "^--(admin-per-epoch|relay)=(0|[fF]|false|False|FALSE)$" . -}}{{- $own = false -}}{{- end -}}
{{- end -}}
{{- if and $hot.enabled $own -}}true{{- end -}}
{{- end -}}

{{- /* Where the serving epoch's admin is then, whichever pod it is in. */ -}}
{{- define "aether-proxy.adminLink" -}}
{{- printf "%s/admin.sock" (include "aether-proxy.stateDir" .) -}}
{{- end -}}

{{- define "aether-proxy.configMapName" -}}
{{- default (include "aether-proxy.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{- define "aether-proxy.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
