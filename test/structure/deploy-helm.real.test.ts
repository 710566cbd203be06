import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler'
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { Service } from 'kubernetes-models/v1/Service'
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount'
import { beforeAll, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { describeWith } from '../support/requirements.ts'

type Values = Readonly<Record<string, unknown>>
type Manifest = {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: Readonly<Record<string, unknown>>
  readonly data: Readonly<Record<string, string>>
}

const chart = 'deploy/helm/trellis'
/** JSON Schemas of the Kubernetes API; that of a ServiceMonitor belongs to its operator. */
const models = {
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  Ingress,
  NetworkPolicy,
  PodDisruptionBudget,
  Service,
  ServiceAccount,
} as const

const folder = mkdtempSync(join(tmpdir(), 'trellis-helm-'))

const isMap = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** As Helm merges files of values: maps by key, everything else replaced. */
const merged = (base: Values, more: Values): Values => {
  const whole: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(more)) {
    const before = whole[key]
    whole[key] = isMap(before) && isMap(value) ? merged(before, value) : value
  }
  return whole
}

const goEnv = {
  ...process.env,
  GO111MODULE: 'off',
  GOPATH: '/usr/share/gocode',
  GOFLAGS: '',
  GOCACHE: join(folder, 'go-cache'),
}
const renderer = join(folder, 'render-chart')

/** The rendered templates by name, or the message of the failure. */
const render = async (more: Values): Promise<Readonly<Record<string, string>> | string> => {
  const values = merged(parse(await readFile(`${chart}/values.yaml`, 'utf8')) as Values, more)
  const child = spawn(renderer, [chart, 'shop', 'web'])
  child.stdin.end(JSON.stringify(values))
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)])
  return error === '' ? (JSON.parse(out) as Record<string, string>) : error
}

const rendered = async (more: Values): Promise<readonly Manifest[]> => {
  const files = await render(more)
  if (typeof files === 'string') throw new Error(files)
  return Object.entries(files)
    .filter(([name]) => name.endsWith('.yaml'))
    .flatMap(([, content]) => parseAllDocuments(content))
    .map((document) => {
      expect(document.errors).toEqual([])
      return document.toJS() as Manifest
    })
}

const api = {
  contract: 'open',
  mount: '/',
  upstream: { targets: ['http://api.web.svc.cluster.local'] },
}
const services = { config: { services: { api } } }
const everything = {
  ...services,
  imagePullSecrets: [{ name: 'registry' }],
  podAnnotations: { 'example.org/a': 'b' },
  nodeSelector: { disk: 'fast' },
  tolerations: [{ key: 'a', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  service: { annotations: { 'example.org/a': 'b' } },
  ingress: { enabled: true, className: 'nginx', tlsSecretName: 'tls', annotations: { a: 'b' } },
  autoscaling: { enabled: true },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  networkPolicy: { enabled: true },
}

const named = (manifests: readonly Manifest[], kind: string, name = 'shop'): Manifest => {
  const [found, ...others] = manifests.filter((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined || others.length > 0) throw new Error(`${kind} ${name}`)
  return found
}

// Rendered by Go's text/template with the functions of sprig, as Helm does; Helm itself is not packaged by Debian.
describeWith('go', 'the Helm chart', () => {
  beforeAll(async () => {
    await promisify(execFile)('go', ['build', '-o', renderer, 'test/support/render-chart.go'], { env: goEnv })
  })

  test.each([
    ['few values', services],
    ['every option', everything],
  ])('with %s gives manifests that the Kubernetes API accepts', async (_description, values) => {
    const manifests = await rendered(values)
    expect(manifests.length).toBeGreaterThan(5)
    for (const manifest of manifests) {
      if (manifest.kind === 'ServiceMonitor') continue
      const Model = models[manifest.kind as keyof typeof models]
      expect([manifest.kind, Model]).toEqual([manifest.kind, expect.any(Function)])
      // Its constructor takes the type of the kind.
      ;new (Model as new (data: unknown) => { validate(): void })(manifest).validate()
    }
  })

  test('an unknown member would be refused by these schemas', () => {
    const wrong = { metadata: { name: 'a' }, spec: { replicas: 'two' } }
    expect(() => new Deployment(wrong as never).validate()).toThrow(/replicas/)
  })

  test('every option adds its manifest', async () => {
    const kinds = (manifests: readonly Manifest[]) => manifests.map(({ kind }) => kind).sort()
    const few = kinds(await rendered(services))
    const all = kinds(await rendered(everything))
    expect(few).toEqual([
      'ConfigMap',
      'Deployment',
      'PodDisruptionBudget',
      'Service',
      'Service',
      'ServiceAccount',
    ])
    expect(all.filter((kind) => !few.includes(kind))).toEqual([
      'HorizontalPodAutoscaler',
      'Ingress',
      'NetworkPolicy',
      'ServiceMonitor',
    ])
  })

  test('the configuration of the ConfigMap has no faults, and its ports are those of the container', async () => {
    const manifests = await rendered(services)
    for (const key of ['admin-token', 'redis-url', 'redis-key'])
      writeFileSync(join(folder, key), 'redis://valkey.trellis.svc.cluster.local:6379')
    const content = named(manifests, 'ConfigMap').data['trellis.yaml'] ?? ''
    const result = await checkConfig(content.replaceAll('/run/secrets/trellis', folder), {})
    if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
    const { listen, admin, drain } = result.config
    const { template } = named(manifests, 'Deployment').spec as {
      template: {
        spec: { terminationGracePeriodSeconds: number; containers: { ports: unknown; args: unknown }[] }
      }
    }
    expect(template.spec.containers[0]?.ports).toEqual([
      { name: 'http', containerPort: listen.port },
      { name: 'admin', containerPort: admin.port },
    ])
    expect(template.spec.containers[0]?.args).toEqual(['start', '-c', '/etc/trellis/trellis.yaml'])
    expect(template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(
      drain.delayMs + drain.timeoutMs,
    )
  })

  test('the pod has the same rights, probes and volumes as that of deploy/kubernetes', async () => {
    type Pod = { containers: Record<string, unknown>[] } & Record<string, unknown>
    const podOf = (manifest: Manifest): Pod => (manifest.spec['template'] as { spec: Pod }).spec
    const own = podOf(named(await rendered(services), 'Deployment'))
    const file = await readFile('deploy/kubernetes/gateway/deployment.yaml', 'utf8')
    const other = podOf(parse(file) as Manifest)
    for (const key of ['securityContext', 'automountServiceAccountToken', 'terminationGracePeriodSeconds'])
      expect([key, own[key]]).toEqual([key, other[key]])
    const [container = {}] = own.containers
    for (const key of [
      'startupProbe',
      'livenessProbe',
      'readinessProbe',
      'securityContext',
      'volumeMounts',
      'resources',
      'args',
    ])
      expect([key, container[key]]).toEqual([key, other.containers[0]?.[key]])
  })

  test('selectors find the pods, and only those of the release', async () => {
    const manifests = await rendered(everything)
    const { template } = named(manifests, 'Deployment').spec as { template: Manifest }
    const { labels } = template.metadata
    expect(labels['app.kubernetes.io/instance']).toBe('shop')
    const label = (value: unknown) => (value as { matchLabels: unknown }).matchLabels
    expect(labels).toMatchObject(named(manifests, 'Service').spec['selector'] as object)
    expect(labels).toMatchObject(named(manifests, 'Service', 'shop-admin').spec['selector'] as object)
    for (const kind of ['Deployment', 'PodDisruptionBudget'])
      expect(labels).toMatchObject(label(named(manifests, kind).spec['selector']) as object)
    expect(labels).toMatchObject(label(named(manifests, 'NetworkPolicy').spec['podSelector']) as object)
    expect(named(manifests, 'Service', 'shop-admin').metadata.labels).toMatchObject(
      label(named(manifests, 'ServiceMonitor').spec['selector']) as object,
    )
  })

  test.each([
    ['no service', {}, 'config.services: name at least one service'],
    [
      'several pods without a shared Redis',
      merged(services, { config: { cache: { shared: { url: '' } } } }),
      'config.cache.shared.url: several pods need a shared Redis',
    ],
  ])('with %s is refused with the reason', async (_description, values, reason) => {
    expect(await render(values)).toContain(reason)
  })

  test('one pod needs no Redis', async () => {
    const single = { replicas: 1, config: { services: { api }, cache: { shared: { url: '' } } } }
    const manifests = await rendered(merged(services, single))
    expect(manifests.map(({ kind }) => kind)).not.toContain('PodDisruptionBudget')
  })

  test('its version is that of the package', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
    expect(parse(await readFile(`${chart}/Chart.yaml`, 'utf8'))).toMatchObject({
      version,
      appVersion: version,
    })
  })
})
