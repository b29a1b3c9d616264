{{- /* What can't work is refused here, in one sentence that says which two collide. */ -}}
{{- define "aether-proxy.refusals" -}}
{{- $hot := .Values.proxy.hotRestart -}}
{{- if and $hot.crossPod (not $hot.enabled) -}}
{{- fail "proxy.hotRestart.crossPod needs proxy.hotRestart.enabled: only the supervisor hands over from pod to pod" -}}
{{- end -}}
{{- if and $hot.surge (not $hot.crossPod) -}}
{{- fail "proxy.hotRestart.surge needs proxy.hotRestart.crossPod: two pods beside each other that share nothing would fight for the same ports" -}}
{{- end -}}
{{- if and $hot.crossPod (not .Values.hostNetwork) -}}
{{- fail "proxy.hotRestart.crossPod needs hostNetwork: pods with network namespaces of their own have no sockets to hand over" -}}
{{- end -}}
{{- if and $hot.surge .Values.ports -}}
{{- fail "ports can't be declared with proxy.hotRestart.surge: with hostNetwork each becomes a hostPort, and the new pod would stay Pending because the old one has it" -}}
{{- end -}}
{{- if and $hot.binary.volume (not $hot.enabled) -}}
{{- fail "proxy.hotRestart.binary.volume needs proxy.hotRestart.enabled: only the supervisor takes its Envoy from a volume" -}}
{{- end -}}
{{- if and .Values.existingConfigMap .Values.bootstrap -}}
{{- fail "bootstrap and existingConfigMap are both set: which one is Envoy to run?" -}}
{{- end -}}
{{- if $hot.enabled -}}{{- include "aether-proxy.refusedTimes" . -}}{{- end -}}
{{- end -}}

{{- define "aether-proxy.refusedTimes" -}}
{{- $t := include "aether-proxy.times" . | fromJson -}}
{{- $grace := int $t.grace -}}{{- $drain := int $t.drain -}}{{- $limit := int $t.limit -}}{{- $wait := int $t.wait -}}
{{- if lt $grace 25 -}}
{{- fail (printf "terminationGracePeriodSeconds is %d, but an Envoy can't be drained in less than 25 seconds" $grace) -}}
{{- end -}}
{{- if le $limit $drain -}}
{{- fail (printf "the limit of a draining epoch (proxy.hotRestart.parentShutdownTimeSeconds, %d s) has to be longer than its drain time (proxy.hotRestart.drainTimeSeconds, %d s)" $limit $drain) -}}
{{- end -}}
{{- if lt (mul 2 $grace) (add (mul 2 $limit) $drain 10) -}}
{{- fail (printf "terminationGracePeriodSeconds (%d s) is shorter than parentShutdownTimeSeconds + drainTimeSeconds/2 + 5 s (%d + %d/2 + 5): the kubelet's SIGKILL would cut connections that still have time" $grace $limit $drain) -}}
{{- end -}}
{{- if lt $grace (add $wait $limit 5 | int) -}}
{{- fail (printf "terminationGracePeriodSeconds (%d s) is shorter than successorWaitSeconds + parentShutdownTimeSeconds + 5 s (%d + %d + 5): a pod that waited for its successor would have no time left to drain" $grace $wait $limit) -}}
{{- end -}}
{{- end -}}
