// What plugins announce in the index of a site, and documents of thousands of paths.

export type Routes = Readonly<Record<string, object>>

const endpoint = (type: string) => ({
  methods: ['GET'],
  args: { page: { type, default: 1 }, context: { type: 'string', enum: ['view', 'edit'], default: 'view' } },
})
export const routesOf = (count: number, pattern: (at: number) => string, type = 'integer'): Routes =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      pattern(at),
      { namespace: 'plug/v1', methods: ['GET'], endpoints: [endpoint(type)] },
    ]),
  )

/** A route of two parameters. */
export const grouped = (at: number): string => `/plug/v1/things${at}/(?P<id>[\\d]+)/parts/(?P<part>[\\w-]+)`

/** The index of a site at this origin. */
export const indexOf = (origin: string, routes: Routes): string =>
  JSON.stringify({
    name: 'Site',
    namespaces: ['plug/v1'],
    routes: { '/': { _links: { self: [{ href: `${origin}/wp-json/` }] } }, ...routes },
  })

/** A document with these many paths, of two operations each. */
export const documentOf = (count: number, title: string): string =>
  JSON.stringify({
    openapi: '3.1.0',
    info: { title, version: '1' },
    components: {
      schemas: Object.fromEntries(
        Array.from({ length: 300 }, (_, at) => [
          `Thing${at}`,
          {
            type: 'object',
            required: ['id'],
            properties: { id: { type: 'integer' }, name: { type: 'string' } },
          },
        ]),
      ),
    },
    paths: Object.fromEntries(
      Array.from({ length: count }, (_, at) => {
        const content = { 'application/json': { schema: { $ref: `#/components/schemas/Thing${at % 300}` } } }
        const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } }
        return [
          `/things${at}/{id}`,
          {
            get: { parameters: [id], responses: { 200: { description: title, content } } },
            put: { parameters: [id], requestBody: { content }, responses: { 204: { description: title } } },
          },
        ]
      }),
    ),
  })
