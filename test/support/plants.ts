import { documentRequests, documentRows } from '../../src/build/document-contract.ts'
import type { OpenApiRequests, OpenApiRequestsOptions } from '../../src/openapi/requests/openapi-requests.ts'
import type { Row } from '../../src/service/row.ts'
import type { Validator } from '../../src/service/validation.ts'

type PlantOptions = Pick<OpenApiRequestsOptions, 'limits' | 'unknownParameters' | 'trackingParameters'> & {
  readonly limitParameter: string
}

const service = (
  limitParameter: string,
  unknown: PlantOptions['unknownParameters'] = 'strip',
  tracking: readonly string[] = [],
) => ({ contract: 'plants' as const, limitParameter, parameters: { unknown, tracking: [...tracking] } })

/** The rows of the plant store, as a service gets them from contracts/plants.yaml. */
export const plantRows = ({ limitParameter }: { readonly limitParameter: string }): readonly Row[] =>
  documentRows(service(limitParameter))

/** Routes and validation of the plant store. */
export const plantRequests = (options: PlantOptions): Promise<OpenApiRequests> => {
  const { limits, limitParameter, unknownParameters, trackingParameters } = options
  return documentRequests(service(limitParameter, unknownParameters, trackingParameters), limits)
}

export const createPlantsValidator = async (options: PlantOptions): Promise<Validator> =>
  (await plantRequests(options)).validator
