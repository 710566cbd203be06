import { plantRows } from '../src/contracts/plants/route-table.ts'
import { requestField } from '../src/http/message.ts'
import { createPlantsValidator } from '../src/request/plants-validator.ts'
import { createRouter } from '../src/request/router.ts'
import {
  type EmbeddedReply,
  type EmbeddedSettings,
  type EmbeddedUpstream,
  lenientValidation,
  type ReceivedRequest,
  serveEmbedded,
} from './embedded-server.ts'

type Plant = { readonly name: string; readonly tag?: string }

export type EmbeddedPlantsOptions = EmbeddedSettings & {
  /** Path in front of `/plants`, without a trailing slash; '' or '/' for none. */
  readonly basePath: string
  /** Name of the query parameter that bounds the list. */
  readonly limitParameter: string
  readonly limits: Parameters<typeof createPlantsValidator>[0]['limits']
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
  /^bearer [^\s]+$/i.test(requestField(request.fields, 'authorization')?.trim() ?? '')

/** The identifier as the validator read it: decimal text or a bigint, never a rounded number. */
const plantId = (value: unknown): bigint | undefined => {
  if (typeof value === 'bigint') return value
  return typeof value === 'string' && /^-?\d{1,19}$/.test(value) ? BigInt(value) : undefined
}

const createPlant = (plants: Map<bigint, Plant>, input: Readonly<Record<string, unknown>>): EmbeddedReply => {
  const id = plantId(input['id'])
  if (id === undefined) return error(400, 'id must be an integer')
  if (plants.has(id)) return error(409, 'a plant with this id exists')
  if (plants.size >= maxPlants) return error(507, 'the store is full')
  const tag = input['tag']
  const plant: Plant = { name: String(input['name']), ...(typeof tag === 'string' ? { tag } : {}) }
  plants.set(id, plant)
  return json(200, plant)
}

const listPlants = (plants: Map<bigint, Plant>, input: Readonly<Record<string, unknown>>): EmbeddedReply => {
  const limit = Object.values(input).find((value) => typeof value === 'number' || typeof value === 'bigint')
  const all = [...plants.values()]
  return json(200, limit === undefined ? all : all.slice(0, Number(limit)))
}

const deletePlant = (plants: Map<bigint, Plant>, input: Readonly<Record<string, unknown>>): EmbeddedReply => {
  const id = plantId(input['id'])
  return id !== undefined && plants.delete(id)
    ? { status: 204, fields: {}, content: Buffer.alloc(0) }
    : error(404, 'no plant has this id')
}

/** Starts a plant store with about twenty plants; any bearer token is accepted, none is 401. */
export const startEmbeddedPlants = (options: EmbeddedPlantsOptions): Promise<EmbeddedUpstream> => {
  const plants = seed()
  const { limitParameter, limits } = options
  const { find } = createRouter(plantRows({ limitParameter }))
  const { validate } = createPlantsValidator({ limits, limitParameter, ...lenientValidation })
  const prefix = options.basePath.replace(/\/$/, '')
  return serveEmbedded((request) => {
    const [target = '', query = ''] = request.target.split('?', 2)
    if (!hasBearer(request)) {
      return error(401, 'a bearer token is required', { 'WWW-Authenticate': 'Bearer' })
    }
    if (!target.startsWith(prefix)) return error(404, 'no such resource')
    const finding = find(request.method, target.slice(prefix.length))
    if (finding.kind !== 'found') return error(404, 'no such resource')
    const validation = validate({
      method: request.method,
      row: finding.row,
      endpoint: finding.endpoint,
      pathParameters: finding.pathParameters,
      query,
      contentType: requestField(request.fields, 'content-type'),
      content: request.content.length === 0 ? undefined : request.content,
    })
    if (validation.kind === 'invalid') return json(validation.status, validation.body)
    if (request.method === 'POST') return createPlant(plants, validation.arguments)
    if (request.method === 'DELETE') return deletePlant(plants, validation.arguments)
    return listPlants(plants, validation.arguments)
  }, options)
}
