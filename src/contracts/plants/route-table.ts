import type { Arguments, Row } from '../row.ts'

const plant: Arguments = {
  name: { description: 'Name of the plant.', type: 'string', required: true },
  tag: { description: 'Tag that tells the kind of plant.', type: 'string' },
}

const newPlant: Arguments = {
  ...plant,
  id: {
    description: 'Identification number of the plant.',
    type: 'integer',
    format: 'int64',
    required: true,
  },
}

export type PlantRowOptions = {
  /** Name of the query parameter that bounds the list. */
  readonly limitParameter: string
}

/** The route table of the plant store. */
export const plantRows = (options: PlantRowOptions): readonly Row[] => [
  {
    id: 'plants.collection',
    template: '/plants',
    pattern: '/plants',
    namespace: '',
    collection: 'plants',
    kind: 'collection',
    handledBy: 'upstream',
    endpoints: [
      {
        methods: ['GET'],
        arguments: {
          [options.limitParameter]: {
            description: 'How many plants are listed at most.',
            type: 'integer',
            minimum: 1,
          },
        },
      },
      { methods: ['POST'], arguments: newPlant },
    ],
  },
  {
    id: 'plants.item',
    template: '/plants/{id}',
    pattern: '/plants/(?P<id>[^\\/]+)',
    namespace: '',
    collection: 'plants',
    kind: 'item',
    handledBy: 'upstream',
    endpoints: [
      {
        methods: ['DELETE'],
        arguments: {
          id: {
            description: 'Identification number of the plant.',
            type: 'integer',
            format: 'int64',
            required: true,
          },
        },
      },
    ],
  },
]
