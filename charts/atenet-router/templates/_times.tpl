{{- /* Seconds kept back of the grace period, as atenet-router does it: a twelfth, from 1 to 5. */ -}}
{{- define "atenet-router.reserve" -}}
{{- min 5 (max 1 (div (int .Values.terminationGracePeriodSeconds) 12)) -}}
{{- end -}}

{{- /* The waiter must end before the kubelet's SIGKILL. */ -}}
{{- define "atenet-router.waiterDeadline" -}}
{{- sub (int .Values.terminationGracePeriodSeconds) (include "atenet-router.reserve" . | int) -}}
{{- end -}}

{{- /* What can't work is refused here, in one sentence. */ -}}
{{- define "atenet-router.refusals" -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- $d := .Values.drain -}}
{{- $reserve := include "atenet-router.reserve" . | int -}}
{{- /* As atenet-router derives them: a derived time needs a second at least. */ -}}
{{- $noWindow := kindIs "invalid" $d.windowSeconds -}}
{{- $noTimeout := kindIs "invalid" $d.timeoutSeconds -}}
{{- $delay := ternary (min 13 (div $grace 4)) (int $d.delaySeconds) (kindIs "invalid" $d.delaySeconds) | int -}}
{{- $rest := sub $grace (add $reserve $delay) | int -}}
{{- $window := int $d.windowSeconds -}}
{{- $timeout := int $d.timeoutSeconds -}}
{{- if and $noWindow $noTimeout -}}
{{- $window = div (mul $rest 15) 42 | int -}}
{{- else if $noWindow -}}
{{- $window = sub $rest $timeout | int -}}
{{- end -}}
{{- if $noTimeout -}}
{{- $timeout = max 1 (sub $rest $window) | int -}}
{{- end -}}
{{- if $noWindow -}}
{{- $window = max 1 $window | int -}}
{{- end -}}
{{- $sum := add $delay $window $timeout $reserve | int -}}
{{- if gt $sum $grace -}}
{{- fail (printf "drain.delaySeconds (%d), drain.windowSeconds (%d), drain.timeoutSeconds (%d) and %d s for the marker and Envoy's own end are %d s together: more than terminationGracePeriodSeconds (%d)" $delay $window $timeout $reserve $sum $grace) -}}
{{- end -}}
{{- if and .Values.nativeSidecar (semverCompare "<1.29.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "nativeSidecar needs Kubernetes 1.29, and this is %s: there Envoy would be an init container that never ends" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (not .Values.existingConfigMap) (empty .Values.config.listeners) -}}
{{- fail "config has no listeners, and existingConfigMap is empty: what is Envoy to serve?" -}}
{{- end -}}
{{- if and .Values.service.enabled (empty .Values.service.ports) -}}
{{- fail "service.enabled without service.ports: a Service needs a port" -}}
{{- end -}}
{{- end -}}
