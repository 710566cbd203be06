import { requestHeader } from '../src/http/headers/header-lines.ts'
import { memberText } from '../src/http/json-text.ts'
import type { OpenApiRequests } from '../src/openapi/requests/openapi-requests.ts'
import {
  type EmbeddedReply,
  type EmbeddedSettings,
  type EmbeddedUpstream,
  type ReceivedRequest,
  serveEmbedded,
} from './embedded-server.ts'

type Plant = { readonly name: string; readonly tag?: string }

export type EmbeddedPlantsOptions = EmbeddedSettings & {
  /** Path in front of `/plants`, without a trailing slash; '' or '/' for none. */
  readonly basePath: string
  /** Routes and validation of the contract. */
  readonly requests: OpenApiRequests
}

/** Enough for any demo; a full store answers 507 instead of growing. */
const maxPlants = 10_000

const seedNames = [
  'Monstera', 'Basil', 'Aloe vera', 'Snake plant', 'Peace lily', 'Rosemary', 'Fern', 'Jade plant', 'Orchid', 'Mint',
  'Lavender', 'Thyme', 'Cactus', 'Ivy', 'Bamboo', 'Calathea', 'Pothos', 'Dahlia', 'Tulip', 'Yucca',
] // biome-ignore format: one line of names reads better than twenty
const seedTags = ['leafy', 'herb', 'succulent', undefined]

const seed = (): Map<bigint, Plant> =>
  new Map(
    seedNames.map((name, index) => {
      const tag = seedTags[index % seedTags.length]
      return [BigInt(index + 1), tag === undefined ? { name } : { name, tag }]
    }),
  )

const json = (status: number, body: unknown, fields: Record<string, string> = {}): EmbeddedReply => ({
  status,
  fields: { 'Content-Type': 'application/json', ...fields },
  content: Buffer.from(JSON.stringify(body)),
})

const error = (status: number, message: string, fields: Record<string, string> = {}): EmbeddedReply =>
  json(status, { error: status, message }, fields)

const hasBearer = (request: ReceivedRequest): boolean =>
  /^bearer [^\s]+$/i.test(requestHeader(request.fields, 'authorization')?.trim() ?? '')

const createPlant = (plants: Map<bigint, Plant>, content: Buffer): EmbeddedReply => {
  const text = content.toString()
  // As it is written: a number would be rounded.
  const id = BigInt(memberText(text, 'id') ?? '')
  if (plants.has(id)) return error(409, 'a plant with this id exists')
  if (plants.size >= maxPlants) return error(507, 'the store is full')
  const { name, tag } = JSON.parse(text) as Plant
  const plant: Plant = { name, ...(tag === undefined ? {} : { tag }) }
  plants.set(id, plant)
  return json(200, plant)
}

const listPlants = (plants: Map<bigint, Plant>, input: Readonly<Record<string, unknown>>): EmbeddedReply => {
  const limit = Object.values(input).find((value) => typeof value === 'number')
  return json(200, [...plants.values()].slice(0, limit))
}

const deletePlant = (plants: Map<bigint, Plant>, id: string | undefined): EmbeddedReply =>
  plants.delete(BigInt(id ?? ''))
    ? { status: 204, fields: {}, content: Buffer.alloc(0) }
    : error(404, 'no plant has this id')

/** Starts a plant store with about twenty plants; any bearer token is accepted, none is 401. */
export const startEmbeddedPlants = (options: EmbeddedPlantsOptions): Promise<EmbeddedUpstream> => {
  const plants = seed()
  const { find, validator } = options.requests
  const prefix = options.basePath.replace(/\/$/, '')
  return serveEmbedded((request) => {
    const [target = '', query = ''] = request.target.split('?', 2)
    if (!hasBearer(request)) {
      return error(401, 'a bearer token is required', { 'WWW-Authenticate': 'Bearer' })
    }
    if (!target.startsWith(prefix)) return error(404, 'no such resource')
    const routeMatch = find(request.method, target.slice(prefix.length))
    if (routeMatch.kind !== 'found') return error(404, 'no such resource')
    const validation = validator.validate({
      method: request.method,
      row: routeMatch.row,
      endpoint: routeMatch.endpoint,
      pathParameters: routeMatch.pathParameters,
      query,
      contentType: requestHeader(request.fields, 'content-type'),
      content: request.content.length === 0 ? undefined : request.content,
    })
    if (validation.kind === 'invalid') return json(validation.status, validation.body)
    if (request.method === 'POST') return createPlant(plants, request.content)
    if (request.method === 'DELETE') return deletePlant(plants, routeMatch.pathParameters['id'])
    return listPlants(plants, validation.arguments)
  }, options)
}
