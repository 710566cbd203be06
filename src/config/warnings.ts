import * as zlib from 'node:zlib'
import type { Config, ServiceConfig } from './config.ts'

/** Something that is allowed, and that the person who runs the gateway should know. */
export type ConfigWarning = { readonly path: string; readonly message: string }

type Row = { readonly path: string; readonly isUsed: (config: Config) => boolean; readonly message: string }

const loopback = /^(127\.|localhost$|::1$)/

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '')

const advice: readonly Row[] = [
  {
    path: 'cache.compression.encodings',
    isUsed: ({ cache }) => cache.compression.encodings.includes('zstd') && !('zstdCompress' in zlib),
    message: 'zstd requires Node 22.15 or newer; only the other codings are used',
  },
  {
    path: 'cache.shared.key',
    isUsed: ({ cache: { shared } }) =>
      shared.url.isSet && shared.key.length === 0 && !loopback.test(hostOf(shared.url.reveal())),
    message:
      'is not set, and Redis is on another machine: anyone who can write to it can change responses and hide writes',
  },
  {
    path: 'admin.host',
    isUsed: ({ admin }) => !loopback.test(admin.host) && !admin.token.isSet,
    message:
      'other machines can reach the admin side, and admin.token is not set: they can read everything there, but change nothing',
  },
]

const insecureUpstream = ({ name, upstream }: ServiceConfig): ConfigWarning[] =>
  upstream.tls.acceptAnyCertificate
    ? [
        {
          path: `services.${name}.upstream.tls.acceptAnyCertificate`,
          message: 'certificates are not checked: an attacker in between can read and change everything',
        },
      ]
    : []

const plainKeys = ({ name, access }: ServiceConfig): ConfigWarning[] => {
  const url = access?.jwt?.jwks ?? ''
  return url.startsWith('http:') && !loopback.test(hostOf(url))
    ? [
        {
          path: `services.${name}.access.jwt.jwks`,
          message: 'is not https: an attacker in between can replace the keys, and make tokens',
        },
      ]
    : []
}

const deadRules = (service: ServiceConfig): ConfigWarning[] =>
  service.contract !== 'site' || service.names !== 'same' || service.upstream.basePath.endsWith('/site-json')
    ? []
    : service.cache.rules.flatMap(({ match }, index) =>
        match.segments[0] === 'site'
          ? [
              {
                path: `services.${service.name}.cache.rules[${index}].match`,
                message: 'matches nothing: with names: same, paths are those of the upstream (/wp/v2/...)',
              },
            ]
          : [],
      )

/** What is allowed but should be known. */
export const configWarnings = (config: Config): readonly ConfigWarning[] => [
  ...advice.filter(({ isUsed }) => isUsed(config)).map(({ path, message }) => ({ path, message })),
  ...config.services.flatMap(insecureUpstream),
  ...config.services.flatMap(plainKeys),
  ...config.services.flatMap(deadRules),
]
