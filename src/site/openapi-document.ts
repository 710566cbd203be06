import type { JsonObject } from '../http/json-text.ts'
import { securitySchemes, sharedSchemas } from './openapi/contract-facts.ts'
import { type DescribedRow, type DescribedService, describeRow } from './openapi-operations.ts'

export type DocumentOptions = {
  /** Origin, and perhaps a path, that clients use; without a slash at the end. */
  readonly publicUrl: string
  /** Version of the gateway. */
  readonly version: string
  readonly services: readonly DescribedService[]
  /** Names of the services that have a document of their own. */
  readonly withOwnDocument?: readonly string[]
}

const description =
  'Every operation of the service: the same rows check the requests. ' +
  'The gateway refuses invalid requests itself, in the error format of the service.'

/** Paths that differ in the names of their parameters only are one path (OpenAPI 3.1 §4.8.8.1). */
const shapeOf = (path: string): string => path.replaceAll(/\{[^{}]*\}/g, '{}')

type Collected = {
  readonly paths: Record<string, JsonObject>
  readonly schemas: Record<string, JsonObject>
  readonly tags: Set<string>
  readonly hidden: JsonObject[]
}

/** One path has operations of one service, so where services of several hosts have it the others are listed as hidden. */
const collect = (rows: readonly DescribedRow[], general: string): Collected => {
  const collected: Collected = { paths: {}, schemas: {}, tags: new Set(), hidden: [] }
  const shapes = new Set<string>()
  for (const { path, publicUrl, operations, schemas } of rows) {
    const servers = publicUrl === undefined || publicUrl === general ? {} : { servers: [{ url: publicUrl }] }
    // The first answers, as in the router.
    if (shapes.has(shapeOf(path))) {
      collected.hidden.push({ path, methods: Object.keys(operations), ...servers })
      continue
    }
    shapes.add(shapeOf(path))
    collected.paths[path] = { ...servers, ...operations }
    Object.assign(collected.schemas, schemas)
    for (const operation of Object.values(operations)) {
      for (const tag of operation['tags'] as readonly string[]) collected.tags.add(tag)
    }
  }
  return collected
}

/** The OpenAPI 3.1 document of all services, made of the rows that check their requests. */
export const openApiDocument = ({
  publicUrl,
  version,
  services,
  withOwnDocument = [],
}: DocumentOptions): JsonObject => {
  const others = withOwnDocument.map((name) => `[${name}](docs?service=${encodeURIComponent(name)})`)
  const more = others.length === 0 ? '' : ` Services with a document of their own: ${others.join(', ')}.`
  // The longest mount wins where two services could answer.
  const byMount = [...services].sort((a, b) => b.mount.length - a.mount.length)
  const rows = byMount.flatMap((service) => service.rows.map((row) => describeRow(service, row)))
  const { paths, schemas, tags, hidden } = collect(rows, publicUrl)
  return {
    openapi: '3.1.0',
    info: { title: 'Trellis', version, description: description + more },
    servers: [{ url: publicUrl }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: { schemas: { ...sharedSchemas, ...schemas }, securitySchemes },
    ...(hidden.length > 0 && { 'x-paths-of-the-same-shape': hidden }),
  }
}
