import { plantStoreRequests, plantStoreRows } from '../../src/openapi/contract.ts'
import type { OpenApiRequests, OpenApiRequestsOptions } from '../../src/openapi/requests/openapi-requests.ts'
import type { Validator } from '../../src/service/contract.ts'
import type { Row } from '../../src/service/row.ts'

type PlantOptions = Pick<OpenApiRequestsOptions, 'limits' | 'unknownParameters' | 'trackingParameters'> & {
  readonly limitParameter: string
}

/** The rows of the plant store, as a service gets them from contracts/plants.yaml. */
export const plantRows: (options: { readonly limitParameter: string }) => readonly Row[] = plantStoreRows

/** Routes and validation of the plant store. */
export const plantRequests = (options: PlantOptions): Promise<OpenApiRequests> => {
  const { limits, limitParameter, unknownParameters, trackingParameters } = options
  const parameters = { unknown: unknownParameters, tracking: [...trackingParameters] }
  return plantStoreRequests({ limitParameter, parameters }, limits)
}

export const createPlantsValidator = async (options: PlantOptions): Promise<Validator> =>
  (await plantRequests(options)).validator
