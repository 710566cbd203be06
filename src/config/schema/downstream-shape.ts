import * as z from 'zod'
import { duration, inMs, oneOf, optionalUrl, secret, wait } from './leaves.ts'

const types = ['webhook', 'fastly', 'cloudflare', 'varnish', 'next'] as const

/** Where the interface of a content network is. */
const networks: Readonly<Record<string, string>> = {
  fastly: 'https://api.fastly.com',
  cloudflare: 'https://api.cloudflare.com',
}

/** An id in the path of a request: nothing that leads to another path. */
const id = z
  .string({ error: 'expected an id' })
  .regex(/^[A-Za-z0-9]{0,64}$/, 'expected an id of letters and digits')
  .prefault('')

type Named = {
  readonly type: (typeof types)[number]
  readonly url: string
  readonly secret: { readonly isSet: boolean }
  readonly service: string
  readonly zone: string
}

/** The first key that a receiver of this type lacks. */
const lacking = ({ type, url, secret: key, service, zone }: Named): string | undefined => {
  if (url === '' && networks[type] === undefined) return 'url'
  if (type !== 'varnish' && !key.isSet) return 'secret'
  if (type === 'fastly' && service === '') return 'service'
  return type === 'cloudflare' && zone === '' ? 'zone' : undefined
}

const receiver = z
  .strictObject({
    type: oneOf(types).describe('Kind of the receiver'),
    url: optionalUrl
      .prefault('')
      .describe('Where purges are sent; empty with `fastly` and `cloudflare` = their interface'),
    secret: secret
      .prefault('')
      .describe('Secret. Key that signs (`webhook`, `next`), or token of `fastly` and `cloudflare`'),
    service: id.describe('Id of the service at Fastly'),
    zone: id.describe('Id of the zone at Cloudflare'),
    instances: oneOf(['one', 'dns'])
      .prefault('one')
      .describe(
        'What answers at `url`: `one` process, or with `dns` one for each address of its name, looked up each second',
      ),
    ca: secret.prefault('').describe('Secret. CA certificates in place of the default ones, PEM'),
    timeout: wait
      .refine((ms) => ms >= 10, 'expected at least 10ms')
      .prefault('2s')
      .describe('Longest wait of a write, and of one request'),
    onFailure: oneOf(['refuse', 'wait', 'lag'])
      .prefault('wait')
      .describe(
        'Writes while it does not confirm: `refuse` = 503, `wait` = wait for `timeout`, `lag` = do not wait',
      ),
  })
  .check((payload) => {
    const key = lacking(payload.value)
    if (key === undefined) return
    const message = `a receiver of type ${payload.value.type} requires ${key}`
    payload.issues.push({ code: 'custom', message, input: payload.value })
  })
  .transform((receiver) =>
    inMs('timeout')({
      ...receiver,
      url: receiver.url === '' ? (networks[receiver.type] ?? '') : receiver.url,
    }),
  )

/** Caches in front of the gateway. */
export const downstream = z
  .strictObject({
    tags: oneOf(['Surrogate-Key', 'Cache-Tag', 'xkey', 'Cache-Groups'])
      .prefault('Surrogate-Key')
      .describe('Response header with the tags, as the receivers read it'),
    lifetime: duration
      .prefault('1d')
      .describe('Lifetime for receivers in place of the `ttl` of a rule (`CDN-Cache-Control`)'),
    settle: wait
      .prefault('250ms')
      .describe('Time between a change and its purge, in which responses on their way arrive'),
    key: secret
      .prefault('')
      .describe(
        'Secret. Key of the tags, the same for all gateways; empty = made of the secrets of the receivers',
      ),
    receivers: z
      .array(receiver)
      .min(1)
      .max(16)
      .describe('Caches that are purged before a write is acknowledged'),
  })
  .transform(inMs('lifetime', 'settle'))
  .optional()
