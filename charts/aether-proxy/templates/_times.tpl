{{- /*
What follows from the grace period G, as JSON: drain 5/12 G, the limit of a
draining epoch 2/3 G (less where G is short), successor-wait 1/6 G.
*/ -}}
{{- define "aether-proxy.times" -}}
{{- $hot := .Values.proxy.hotRestart -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- $drain := int (default (div (mul $grace 5) 12) $hot.drainTimeSeconds) -}}
{{- $fits := div (sub (mul $grace 2) (add $drain 10)) 2 -}}
{{- $limit := int (default (min (div (mul $grace 2) 3) $fits) $hot.parentShutdownTimeSeconds) -}}
{{- $wait := 0 -}}
{{- if $hot.crossPod -}}
{{- $wait = int (default (div $grace 6) $hot.successorWaitSeconds) -}}
{{- end -}}
{{- dict "grace" $grace "drain" $drain "limit" $limit "wait" $wait | toJson -}}
{{- end -}}
