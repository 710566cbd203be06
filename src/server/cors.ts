import type { OutgoingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { fieldValue, type GatewayResponse, withoutFields } from '../http/message.ts'

/** Fields that the gateway sends to browsers itself; those of upstreams are removed. */
const corsFields: ReadonlySet<string> = new Set([
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-expose-headers',
  'access-control-max-age',
])

/** A preflight (Fetch standard, CORS-preflight fetch); any other OPTIONS is a request like others. */
const isPreflight = ({ headers }: FastifyRequest): boolean =>
  headers['access-control-request-method'] !== undefined && headers.origin !== undefined

/** Allows cross-origin requests from some origins. Preflights are answered here, before the phases and without an upstream. */
export const registerCors = async (server: FastifyInstance, options: Config['cors']): Promise<void> => {
  const { default: fastifyCors } = await import('@fastify/cors')
  const everybody = options.origins.includes('*')
  const settings = {
    origin: everybody ? '*' : [...options.origins],
    methods: [...options.methods],
    allowedHeaders: [...options.headers],
    exposedHeaders: [...options.exposedHeaders],
    credentials: options.credentials,
    maxAge: Math.floor(options.maxAgeMs / 1000),
  }
  await server.register(fastifyCors, {
    delegator: (
      request: FastifyRequest,
      answer: (error: Error | null, chosen: typeof settings & { preflight: boolean }) => void,
    ) => answer(null, { ...settings, preflight: isPreflight(request) }),
  })
}

/** The response with the gateway's CORS fields in place of the upstream's. */
export const withCorsFields = (response: GatewayResponse, cors: OutgoingHttpHeaders): GatewayResponse => {
  const fields = withoutFields(response.fields, new Set([...corsFields, 'vary']))
  const upstreamVary = fieldValue(response.fields, 'vary')
  const { vary: ownVary, ...own } = cors
  for (const [name, value] of Object.entries(own)) {
    // Without Access-Control-Allow-Origin the other fields have no effect (Fetch standard, CORS check).
    if (corsFields.has(name) && own['access-control-allow-origin'] !== undefined)
      fields.push(name, String(value))
  }
  const names = new Set(
    [upstreamVary, ownVary === undefined ? undefined : String(ownVary)]
      .flatMap((text) => text?.split(',') ?? [])
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  )
  if (names.size > 0) fields.push('Vary', [...names].join(', '))
  return { ...response, fields }
}
