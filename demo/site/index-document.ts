import type { Endpoint, Method, Row } from '../../src/service/row.ts'
import { type Call, ok, type Resource, type Site } from './call.ts'
import { SiteFault } from './site-fault.ts'
import { text } from './values.ts'

/** All methods of a row, in the order they are announced. */
export const methodsOf = (row: Row): readonly Method[] => [
  ...new Set(row.endpoints.flatMap((endpoint) => endpoint.methods)),
]

const describeEndpoint = (endpoint: Endpoint): Record<string, unknown> => {
  const names = Object.entries(endpoint.arguments).map(([name, schema]) => [
    name,
    { ...schema, required: schema.required === true },
  ])
  return {
    methods: endpoint.methods,
    ...(endpoint.allowBatch === undefined ? {} : { allow_batch: { v1: endpoint.allowBatch } }),
    // An empty PHP array is written `[]`.
    args: names.length === 0 ? [] : Object.fromEntries(names),
  }
}

const describeRow = (site: Site, row: Row): Record<string, unknown> => ({
  namespace: row.namespace,
  methods: methodsOf(row),
  endpoints: row.endpoints.map(describeEndpoint),
  // Only a route without parameters has an address.
  ...(row.pattern.includes('(') ? {} : { _links: { self: [{ href: `${site.root}${row.template}` }] } }),
})

const describeRows = (site: Site, rows: readonly Row[]): Record<string, unknown> =>
  Object.fromEntries(rows.map((row) => [row.pattern, describeRow(site, row)]))

const everyone = (): void => undefined

/** The index of the whole site: who it is and what it can do. */
export const indexResource: Resource = {
  permit: everyone,
  run: ({ site }) =>
    ok({
      name: 'Trellis demo',
      description: 'Content served from memory',
      url: site.home,
      home: site.home,
      gmt_offset: '0',
      timezone_string: '',
      page_for_posts: 0,
      page_on_front: 0,
      show_on_front: 'posts',
      namespaces: site.names.namespaces,
      authentication: {
        'application-passwords': {
          endpoints: { authorization: `${site.home}/wp-admin/authorize-application.php` },
        },
      },
      routes: describeRows(site, site.rows),
      site_logo: 0,
      site_icon: 0,
      site_icon_url: '',
      _links: { help: [{ href: 'https://developer.wordpress.org/rest-api/' }] },
    }),
}

/** The index of one namespace; the argument decides which, as in WordPress. */
export const namespaceResource: Resource = {
  permit: everyone,
  run: (call: Call) => {
    const { site } = call
    const namespace = text(call.args, 'namespace') ?? call.row.namespace
    if (!site.names.namespaces.includes(namespace)) {
      throw new SiteFault(404, 'rest_invalid_namespace', 'The specified namespace could not be found.')
    }
    const rows = site.rows.filter((row) => row.namespace === namespace)
    return ok({
      namespace,
      routes: describeRows(site, rows),
      _links: { up: [{ href: `${site.root}/` }] },
    })
  },
}

/** What OPTIONS shows for a route: its endpoints and a schema made of what can be written. */
export const optionsOf = (site: Site, row: Row): Record<string, unknown> => {
  const create = row.endpoints.find((endpoint) => endpoint.methods.includes('POST'))
  const schema = {
    $schema: 'http://json-schema.org/draft-04/schema#',
    title: row.collection,
    type: 'object',
    properties: create?.arguments ?? {},
  }
  return { ...describeRow(site, row), ...(row.collection === '' ? {} : { schema }) }
}
