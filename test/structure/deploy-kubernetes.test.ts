import { mkdtempSync, writeFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import type { Config } from '../../src/config/config.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { metricTable } from '../../src/observability/metrics/registry.ts'

type Labels = Readonly<Record<string, string>>
type Probe = {
  readonly httpGet: { readonly path: string; readonly port: string }
  readonly periodSeconds: number
  readonly failureThreshold: number
}
type Container = {
  readonly image: string
  readonly args: readonly string[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly securityContext: unknown
  readonly resources: { readonly limits: Labels }
  readonly lifecycle?: unknown
  readonly volumeMounts: readonly {
    readonly name: string
    readonly mountPath: string
    readonly subPath?: string
  }[]
}
type PodSpec = {
  readonly serviceAccountName: string
  readonly automountServiceAccountToken: boolean
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly containers: readonly Container[]
  readonly volumes: readonly {
    readonly name: string
    readonly configMap?: { readonly name: string }
    readonly secret?: { readonly secretName: string }
  }[]
}
type Port = { readonly name: string; readonly port: number | string; readonly targetPort: string }
type Selector = { readonly matchLabels: Labels }
/** The members of manifests that these tests read. */
type Manifest = {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Labels }
  readonly spec: {
    readonly selector: Labels | Selector
    readonly podSelector: Selector
    readonly jobLabel: string
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec }
    readonly ports: readonly Port[]
    readonly endpoints: readonly { readonly port: string; readonly path: string }[]
    readonly ingress: readonly {
      readonly ports: readonly { readonly port: string }[]
      readonly from: unknown[]
    }[]
    readonly maxReplicas: number
    readonly minReplicas: number
    readonly replicas: number
    readonly maxUnavailable: number
    readonly scaleTargetRef: { readonly kind: string; readonly name: string }
    readonly metrics: readonly { readonly pods?: { readonly metric: { readonly name: string } } }[]
  }
}

const base = 'deploy/kubernetes'
const folders = ['gateway', 'prometheus']
const kustomization = async (folder: string) =>
  parse(await readFile(`${base}/${folder}/kustomization.yaml`, 'utf8')) as {
    readonly namespace: string
    readonly resources: readonly string[]
    readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[]
    readonly images?: readonly { readonly name: string; readonly newTag: string }[]
  }

const manifests: Manifest[] = []
for (const folder of folders) {
  for (const file of (await kustomization(folder)).resources) {
    const documents = parseAllDocuments(await readFile(`${base}/${folder}/${file}`, 'utf8'))
    manifests.push(...documents.map((document) => document.toJS() as Manifest))
  }
}

const only = (kind: string, name = 'trellis'): Manifest => {
  const found = manifests.filter((manifest) => manifest.kind === kind && manifest.metadata.name === name)
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} of ${kind} ${name}`)
  return found[0]
}

const pod = only('Deployment').spec.template
const container = pod.spec.containers[0] as Container
const portNames = container.ports.map(({ name }) => name)

const folder = mkdtempSync(join(tmpdir(), 'trellis-kubernetes-'))

/** The configuration in the ConfigMap, its secrets in a folder of the test. */
const config = async (): Promise<Config> => {
  writeFileSync(join(folder, 'admin-token'), 'token')
  writeFileSync(join(folder, 'redis-url'), 'redis://valkey:6379')
  writeFileSync(join(folder, 'redis-key'), 'a key of thirty-two characters!!')
  const text = await readFile(`${base}/gateway/trellis.yaml`, 'utf8')
  const result = await checkConfig(text.replaceAll('/run/secrets/trellis', folder), {})
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result.config
}

test('each file is part of one of the two applications', async () => {
  for (const name of folders) {
    const { resources, configMapGenerator = [] } = await kustomization(name)
    const listed = [...resources, ...configMapGenerator.flatMap(({ files }) => files), 'kustomization.yaml']
    expect(listed.sort()).toEqual((await readdir(`${base}/${name}`)).sort())
  }
})

test('trellis check finds no fault in the configuration, and its ports are those of the container', async () => {
  const { listen, admin } = await config()
  expect(Object.fromEntries(container.ports.map(({ name, containerPort }) => [name, containerPort]))).toEqual(
    {
      http: listen.port,
      admin: admin.port,
    },
  )
})

test('the image has a fixed tag', async () => {
  const { images } = await kustomization('gateway')
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
  expect(images).toEqual([{ name: container.image, newName: container.image, newTag: version }])
})

test('configuration and secrets are mounted where the program looks, as folders that can change', async () => {
  const mounts = new Map(container.volumeMounts.map((mount) => [mount.name, mount]))
  for (const mount of mounts.values()) expect(mount.subPath).toBeUndefined()
  const [file] = container.args.slice(container.args.indexOf('-c') + 1)
  expect(file).toBe(`${mounts.get('config')?.mountPath}/trellis.yaml`)
  const generated = (await kustomization('gateway')).configMapGenerator?.map(({ name }) => name)
  expect(generated).toEqual([pod.spec.volumes.find(({ name }) => name === 'config')?.configMap?.name])
  const text = await readFile(`${base}/gateway/trellis.yaml`, 'utf8')
  const secrets = [...text.matchAll(/"file:([^"]+)\/([^/"]+)"/g)]
  expect(secrets.map(([, path]) => path)).toEqual(secrets.map(() => mounts.get('secrets')?.mountPath))
  // The command in kustomization.yaml makes the keys that are read.
  const command = await readFile(`${base}/gateway/kustomization.yaml`, 'utf8')
  for (const [, , key] of secrets) expect(command).toContain(`--from-literal=${key}=`)
})

test('probes use paths of the admin side', () => {
  const { startupProbe, livenessProbe, readinessProbe } = container
  expect(startupProbe.httpGet).toEqual({ path: '/livez', port: 'admin' })
  expect(livenessProbe.httpGet).toEqual({ path: '/livez', port: 'admin' })
  expect(readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'admin' })
})

test('draining fits: seen before the port closes, over before the pod is killed, and not delayed twice', async () => {
  const { drain } = await config()
  const { periodSeconds, failureThreshold } = container.readinessProbe
  expect(container.lifecycle).toBeUndefined()
  expect(periodSeconds * failureThreshold * 1000).toBeLessThan(drain.delayMs)
  expect(pod.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(drain.delayMs + drain.timeoutMs)
})

test('the pod has no rights, nothing to write to, and no token of the cluster', () => {
  expect(pod.spec.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(container.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  expect(pod.spec.automountServiceAccountToken).toBe(false)
  expect(pod.spec.serviceAccountName).toBe(only('ServiceAccount').metadata.name)
})

test('the cache uses at most half of the memory limit', async () => {
  const { cache } = await config()
  const limit = Number.parseInt(container.resources.limits['memory'] ?? '', 10) * 1024 * 1024
  expect(container.resources.limits['memory']).toMatch(/^\d+Mi$/)
  expect(cache.maxBytes * 2).toBeLessThanOrEqual(limit)
})

test.each([
  ['the Service', only('Service').spec.selector],
  ['the Service of the admin side', only('Service', 'trellis-admin').spec.selector],
  ['the Deployment', (only('Deployment').spec.selector as Selector).matchLabels],
  ['the PodDisruptionBudget', (only('PodDisruptionBudget').spec.selector as Selector).matchLabels],
  ['the NetworkPolicy', only('NetworkPolicy').spec.podSelector.matchLabels],
])('%s selects the pods', (_name, selector) => {
  expect(pod.metadata.labels).toMatchObject(selector)
})

test('the Service for clients does not lead to the admin side, and every port that is named exists', () => {
  expect(only('Service').spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http'])
  expect(only('Service', 'trellis-admin').spec.ports.map(({ targetPort }) => targetPort)).toEqual(['admin'])
  const allowed = only('NetworkPolicy').spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port))
  expect(allowed.sort()).toEqual([...portNames].sort())
})

test('the NetworkPolicy admits named clients only, and allows connections to the upstreams of the configuration', async () => {
  const { ingress } = only('NetworkPolicy').spec
  for (const { from } of ingress) expect(from.length).toBeGreaterThan(0)
  const policy = await readFile(`${base}/gateway/network-policy.yaml`, 'utf8')
  for (const { upstream } of (await config()).services) {
    for (const target of [upstream.targets].flat()) {
      const [, namespace] = new URL(target).hostname.split('.')
      expect(policy).toContain(`kubernetes.io/metadata.name: ${namespace} `)
    }
  }
})

test('pods are evicted one at a time, and a rollout takes none away first', () => {
  expect(only('PodDisruptionBudget').spec.maxUnavailable).toBe(1)
  expect(only('Deployment').spec.replicas).toBeGreaterThanOrEqual(2)
})

test('the ServiceMonitor finds the admin Service, and the job is the one that rules look for', () => {
  const { selector, endpoints, jobLabel } = only('ServiceMonitor').spec
  const admin = only('Service', 'trellis-admin')
  expect(admin.metadata.labels).toMatchObject((selector as Selector).matchLabels)
  expect(only('Service').metadata.labels).not.toMatchObject((selector as Selector).matchLabels)
  expect(admin.metadata.labels[jobLabel]).toBe('trellis')
  expect(endpoints.map(({ port, path }) => [port, path])).toEqual([[admin.spec.ports[0]?.name, '/metrics']])
})

test('the autoscaler looks at a metric that exists, and scales what is there', async () => {
  const { scaleTargetRef, metrics, minReplicas, maxReplicas } = only('HorizontalPodAutoscaler').spec
  expect(scaleTargetRef).toMatchObject({ kind: 'Deployment', name: only('Deployment').metadata.name })
  const names = metrics.flatMap(({ pods }) => (pods === undefined ? [] : [pods.metric.name]))
  expect(names).toHaveLength(1)
  expect(Object.values(metricTable).map(({ name }) => name)).toContain(names[0])
  const file = await readFile(`${base}/prometheus/autoscaler.yaml`, 'utf8')
  expect(file).toContain(`seriesQuery: '${names[0]}{`)
  expect([minReplicas, maxReplicas]).toEqual([only('Deployment').spec.replicas, expect.any(Number)])
})
