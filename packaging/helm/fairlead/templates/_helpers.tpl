{{- define "fairlead.name" -}}
{{- if contains "fairlead" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-fairlead" (.Release.Name | trunc 30 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "fairlead.selector" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "fairlead.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "fairlead.scheme" -}}
{{ if .Values.tls.disabled }}http{{ else }}https{{ end }}
{{- end }}

{{- define "fairlead.tls-secret" -}}
{{- if .Values.tls.secret }}{{ .Values.tls.secret }}{{ else if .Values.tls.issuer }}{{ include "fairlead.name" . }}-tls
{{- else }}{{ fail "tls.secret or tls.issuer is required: API keys would travel in the clear. tls.disabled=true says that the cluster's network is trusted" }}{{ end }}
{{- end }}

{{- define "fairlead.domain" -}}
{{ include "fairlead.name" . }}-pods.{{ .Release.Namespace }}.svc.cluster.local
{{- end }}

{{/* The settings of one set of pods, as fairlead.toml has them. Takes (list root own-settings fixed). */}}
{{- define "fairlead.toml" -}}
{{- $root := index . 0 }}
{{- $fixed := index . 2 }}
{{- range $name, $_ := merge (dict) (index . 1) $root.Values.settings }}
{{- if hasKey $fixed $name }}{{ fail (printf "settings.%s follows from other values of this chart: leave it out" $name) }}{{ end }}
{{- end }}
{{- range $name, $value := merge (dict) $fixed (index . 1) $root.Values.settings }}
{{- /* Numbers of a file of values are floats: 1000000 would be 1e+06. */}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $value = int64 $value }}{{ end }}
{{ $name }} = {{ if or (kindIs "float64" $value) (kindIs "int" $value) (kindIs "int64" $value) }}{{ $value | toString | quote }}{{ else }}{{ $value | toJson }}{{ end }}
{{- end }}
{{- end }}
