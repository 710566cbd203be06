import type { Config, ServiceConfig } from './config.ts'
import { urlOfListen } from './load/resolve.ts'
import { Secret } from './secret.ts'

/** `this` holds the value before `Secret.toJSON` replaced it. */
function revealed(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const original = this[key]
  return original instanceof Secret ? original.reveal() : value
}

/** Are two settings equal, secrets included? */
export const sameSettings = (a: unknown, b: unknown): boolean =>
  JSON.stringify(a, revealed) === JSON.stringify(b, revealed)

/** '' where it is made from `listen`: then it changes with it, and is no key of the file. */
export const configuredUrl = ({ listen, publicUrl }: Pick<Config, 'listen' | 'publicUrl'>): string =>
  publicUrl === urlOfListen(listen) ? '' : publicUrl

/** Settings that only a restart changes; a reload applies all others. */
const startSettings: readonly (readonly [path: string, read: (config: Config) => unknown])[] = [
  ['listen.host', ({ listen }) => listen.host],
  ['listen.port', ({ listen }) => listen.port],
  ['admin.host', ({ admin }) => admin.host],
  ['admin.port', ({ admin }) => admin.port],
  ['admin.token', ({ admin }) => admin.token],
  ['publicUrl', (config) => configuredUrl(config)],
  ['workers', ({ workers }) => workers],
  ['listen.http2', ({ listen }) => listen.http2],
  ['listen.tls', ({ listen }) => [listen.tls.cert.isSet, listen.tls.minVersion]],
  ['limits.headerBytes', ({ limits }) => limits.headerBytes],
  ['limits.headersTimeout', ({ limits }) => limits.headersTimeoutMs],
  ['limits.requestTimeout', ({ limits }) => limits.requestTimeoutMs],
  ['limits.readerTimeout', ({ limits }) => limits.readerTimeoutMs],
  ['limits.minBytesPerSecond', ({ limits }) => limits.minBytesPerSecond],
  ['limits.keepAliveTimeout', ({ limits }) => limits.keepAliveTimeoutMs],
  ['limits.connections', ({ limits }) => limits.connections],
  ['limits.connectionsPerAddress', ({ limits }) => limits.connectionsPerAddress],
  ['overload.interval', ({ overload }) => overload.intervalMs],
  ['reload', ({ reload }) => reload],
  ['log', ({ log }) => log],
  ['tracing', ({ tracing }) => tracing],
  ['metrics', ({ metrics }) => metrics],
  ['cache.maxBytes', ({ cache }) => cache.maxBytes],
  ['cache.maxEntryBytes', ({ cache }) => cache.maxEntryBytes],
  ['cache.admission', ({ cache }) => cache.admission],
  ['cache.verify', ({ cache }) => cache.verify],
  ['cache.warm', ({ cache }) => cache.warm],
  ['cache.compression', ({ cache }) => cache.compression],
  ['cache.shared', ({ cache }) => cache.shared],
]

export const restartKeys = (from: Config, to: Config): readonly string[] =>
  startSettings.filter(([, settingOf]) => !sameSettings(settingOf(from), settingOf(to))).map(([path]) => path)

type Named = Readonly<Record<string, unknown>>

/** The keys whose values differ, below a path. */
const differing = (path: string, from: Named, to: Named): readonly string[] =>
  [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((key) => !sameSettings(from[key], to[key]))
    .map((key) => path + key)

const byName = (services: readonly ServiceConfig[]): Readonly<Record<string, ServiceConfig>> =>
  Object.fromEntries(services.map((service) => [service.name, service]))

const maxChanges = 100

/** What a reload changes, as an operator names it: `cors`, `services.blog.cache`; a whole service where it is new or gone. */
export const changedKeys = (from: Config, to: Config): readonly string[] => {
  const { services: before, ...general } = from
  const { services: after, ...nextGeneral } = to
  const [old, next] = [byName(before), byName(after)]
  const services = differing('services.', old, next).flatMap((path) => {
    const name = path.slice('services.'.length)
    const [last, now] = [old[name], next[name]]
    if (last === undefined) return [`${path} (new)`]
    return now === undefined ? [`${path} (gone)`] : differing(`${path}.`, last, now)
  })
  return [...differing('', general, nextGeneral), ...services].slice(0, maxChanges)
}
