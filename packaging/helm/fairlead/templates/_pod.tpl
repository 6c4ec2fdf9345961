{{/* What both sets of pods have. Takes (dict "root" . "kind" "node" or "gateway"). */}}
{{- define "fairlead.stateful-set" -}}
{{- $root := .root }}
{{- $name := include "fairlead.name" $root }}
{{- $values := ternary $root.Values.nodes $root.Values.gateway (eq .kind "node") }}
{{- $with_ray := and $root.Values.ray.enabled (eq .kind "node") }}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $name }}-{{ .kind }}
  labels: {{- include "fairlead.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .kind }}
spec:
  serviceName: {{ $name }}-pods
  replicas: {{ $values.replicas }}
  podManagementPolicy: Parallel
  # One after the other, each when the one before answers again: its functions have another home meanwhile.
  updateStrategy: {type: RollingUpdate}
  selector:
    matchLabels: {{- include "fairlead.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .kind }}
  template:
    metadata:
      labels: {{- include "fairlead.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .kind }}
      annotations:
        checksum/config: {{ include (print $root.Template.BasePath "/config.yaml") $root | sha256sum }}
        {{- with $root.Values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ add (int $root.Values.drain) 30 }}
      {{- if $with_ray }}
      shareProcessNamespace: true  # Ray's supervisor looks at the node's process
      {{- end }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets: {{- range . }}
        - name: {{ . }}{{ end }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: fairlead
          image: {{ include "fairlead.image" $root | quote }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [fairlead, serve, --config, /etc/fairlead/config/{{ .kind }}.toml, --node-name, $(POD_NAME),
                    --advertise, "{{ include "fairlead.scheme" $root }}://$(POD_NAME).{{ include "fairlead.domain" $root }}:9001"]
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
          ports:
            - {name: api, containerPort: 9001}
            {{- if and (eq .kind "gateway") $root.Values.gateway.service.grpcPort }}
            - {name: grpc, containerPort: 8001}
            {{- end }}
          securityContext: {{- toYaml $root.Values.securityContext | nindent 12 }}
          startupProbe:
            httpGet: {path: /healthz, port: api, scheme: {{ include "fairlead.scheme" $root | upper }}}
            periodSeconds: 2
            failureThreshold: 150
          # 503 while it drains: no client is sent there.
          readinessProbe:
            httpGet: {path: /healthz, port: api, scheme: {{ include "fairlead.scheme" $root | upper }}}
            periodSeconds: 2
            failureThreshold: 2
          livenessProbe:
            tcpSocket: {port: api}
            periodSeconds: 10
            failureThreshold: 6
          resources:
            {{- $gpus := dict }}
            {{- if and (eq .kind "node") (not $values.softwareGpu) }}{{ $gpus = dict $values.gpuResource (int $values.gpus) }}{{ end }}
            requests: {{- toYaml (merge (dict) $values.resources.requests) | nindent 14 }}
            limits: {{- toYaml (merge (dict) $gpus $values.resources.limits) | nindent 14 }}
          volumeMounts:
            - {name: state, mountPath: /var/lib/fairlead}
            - {name: config, mountPath: /etc/fairlead/config, readOnly: true}
            - {name: cluster, mountPath: /etc/fairlead/cluster, readOnly: true}
            {{- if not $root.Values.tls.disabled }}
            - {name: tls, mountPath: /etc/fairlead/tls, readOnly: true}
            {{- end }}
            {{- if $root.Values.store.passwordSecret }}
            - {name: store, mountPath: /etc/fairlead/store, readOnly: true}
            {{- end }}
            {{- if eq .kind "node" }}
            - {name: shared-memory, mountPath: /dev/shm}
            {{- end }}
        {{- if $with_ray }}
        - name: ray-worker
          image: {{ required "ray.image is required with ray.enabled: an image with Ray and the wheel of Fairlead" $root.Values.ray.image | quote }}
          command: [ray, start, "--address={{ $name }}-ray-head-svc:6379", --num-gpus=0, --labels, fairlead-node=$(POD_NAME), --block]
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - {name: RAY_gcs_rpc_server_reconnect_timeout_s, value: "600"}
          # The node's operator: it speaks at the socket in the state folder.
          securityContext: {runAsUser: 0}
          resources: {{- toYaml $root.Values.ray.worker.resources | nindent 12 }}
          volumeMounts:
            - {name: state, mountPath: /var/lib/fairlead}
            - {name: config, mountPath: /etc/fairlead/config, readOnly: true}
            - {name: cluster, mountPath: /etc/fairlead/cluster, readOnly: true}
            - {name: shared-memory, mountPath: /dev/shm}
        {{- end }}
      volumes:
        - name: config
          configMap: {name: {{ $name }}}
        - name: cluster
          secret: {secretName: {{ required "clusterKey.secret is required: the Secret with the key that makes a pod a node of this cluster" $root.Values.clusterKey.secret }}, defaultMode: 0600}
        {{- if not $root.Values.tls.disabled }}
        - name: tls
          secret: {secretName: {{ include "fairlead.tls-secret" $root }}, defaultMode: 0600}
        {{- end }}
        {{- if $root.Values.store.passwordSecret }}
        - name: store
          secret: {secretName: {{ $root.Values.store.passwordSecret }}, defaultMode: 0600}
        {{- end }}
        {{- if eq .kind "node" }}
        - name: shared-memory
          emptyDir: {medium: Memory, sizeLimit: {{ ternary $values.sharedMemory $root.Values.ray.worker.sharedMemory (not $with_ray) }}}
        {{- end }}
  volumeClaimTemplates:
    - metadata:
        name: state
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $values.state.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ $values.state.size }}}}
{{- end }}
