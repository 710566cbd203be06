import type { ArgumentSchema, Arguments, Endpoint } from '../row.ts'

const item = (schema: ArgumentSchema): ArgumentSchema => ({
  ...schema,
  properties: {
    ...schema.properties,
    method: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], default: 'POST' },
    id: { type: 'string', description: 'By which later items name this one.' },
    dependsOn: {
      type: 'array',
      items: { type: 'string' },
      description: 'Ids of earlier items; unless all of them succeed this one answers 424.',
    },
    service: { type: 'string', description: 'Another service of the gateway that is meant.' },
  },
})

const extended = (requests: ArgumentSchema): Arguments => ({
  requests: { ...requests, items: item(requests.items ?? {}) },
  extensions: { type: 'boolean', default: false, description: "Asks for more than WordPress's own batch." },
  dryRun: { type: 'boolean', default: false, description: 'Answers the plan and runs nothing.' },
})

/** The batch route's endpoint with the gateway's extensions; requests of WordPress clients keep their meaning. */
export const extendedBatch = (endpoint: Endpoint): Endpoint => ({
  ...endpoint,
  arguments: { ...endpoint.arguments, ...extended(endpoint.arguments['requests'] ?? {}) },
})
