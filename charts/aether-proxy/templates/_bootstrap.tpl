{{- /*
The user's bootstrap with admin and stats listener. The admin is a socket file in
the pod's own volume: on the node's loopback any pod of the node could end
Envoy, and two pods would fight for the port. With an admin per epoch the
supervisor lays another over it, and only the stats listener's cluster names that
one: pods from before crossPod see this bootstrap too, and couldn't bind there.
*/ -}}
{{- define "aether-proxy.bootstrap" -}}
{{- $boot := deepCopy .Values.bootstrap -}}
{{- if not (hasKey $boot "admin") -}}
{{- $_ := set $boot "admin" (dict "address" (dict "pipe" (dict "path" "/var/run/aether-proxy/admin.sock" "mode" 384))) -}}
{{- end -}}
{{- if .Values.stats.enabled -}}
{{- $static := default (dict) $boot.static_resources -}}
{{- $stats := include "aether-proxy.stats" . | fromYaml -}}
{{- $_ := set $static "listeners" (append (default (list) $static.listeners) $stats.listener) -}}
{{- $admin := $boot.admin -}}
{{- if include "aether-proxy.adminPerEpoch" . -}}
{{- $admin = dict "address" (dict "pipe" (dict "path" (include "aether-proxy.adminLink" .))) "moves" true -}}
{{- end -}}
{{- $_ := set $static "clusters" (append (default (list) $static.clusters) (include "aether-proxy.statsCluster" $admin | fromYaml)) -}}
{{- $_ := set $boot "static_resources" $static -}}
{{- end -}}
{{- toYaml $boot -}}
{{- end -}}

{{- /* Flags that name this node to a control plane, unless the bootstrap does. */ -}}
{{- define "aether-proxy.nodeNamed" -}}
{{- if and (not .Values.existingConfigMap) (not (hasKey .Values.bootstrap "node")) -}}
- --service-node
- $(NODE_NAME)
- --service-cluster
- {{ include "aether-proxy.fullname" . }}
{{- end -}}
{{- end -}}

{{- define "aether-proxy.statsCluster" -}}
name: aether_admin
type: STATIC
connect_timeout: 1s
{{- if .moves }}
# A kept connection would lead to a draining epoch's admin when another serves.
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    common_http_protocol_options: {max_requests_per_connection: 1}
    explicit_http_config: {http_protocol_options: {}}
{{- end }}
load_assignment:
  cluster_name: aether_admin
  endpoints:
    - lb_endpoints:
        - endpoint:
            address:
              {{- if hasKey .address "pipe" }}
              pipe: {path: {{ .address.pipe.path }}}
              {{- else }}
              {{- toYaml .address | nindent 14 }}
              {{- end }}
{{- end -}}

{{- define "aether-proxy.stats" -}}
listener:
  name: aether_stats
  address:
    socket_address:
      address: {{ .Values.stats.address | quote }}
      port_value: {{ int .Values.stats.port }}
  filter_chains:
    - filters:
        - name: envoy.filters.network.http_connection_manager
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
            stat_prefix: aether_stats
            http_filters:
              - name: envoy.filters.http.router
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
            route_config:
              virtual_hosts:
                - name: stats
                  domains: ["*"]
                  routes:
                    {{- range list "/stats/prometheus" "/ready" }}
                    - match:
                        path: {{ . }}
                        headers:
                          - name: ":method"
                            string_match: {exact: GET}
                      route: {cluster: aether_admin, timeout: 10s}
                    {{- end }}
{{- end -}}
