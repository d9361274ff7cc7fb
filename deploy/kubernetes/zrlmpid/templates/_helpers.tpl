{{- define "zrlmpid.name" -}}
{{- $name := contains "zrlmpid" .Release.Name | ternary .Release.Name (printf "%s-zrlmpid" .Release.Name) -}}
{{- $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- /* The labels that select the pods of this release, and nothing else. */ -}}
{{- define "zrlmpid.selector" -}}
app.kubernetes.io/name: zrlmpid
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "zrlmpid.metadata" -}}
name: {{ include "zrlmpid.name" . }}
labels:
  {{- include "zrlmpid.selector" . | nindent 2 }}
{{- end -}}

{{- define "zrlmpid.image" -}}
{{- $image := .Values.image -}}
{{- $image.repository -}}
{{- with $image.tag | default .Chart.AppVersion }}:{{ . }}{{ end -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}
