import { describe, expect, test } from 'vitest'
import { createRouter } from '../../../../src/service/router.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { plantRows } from '../../../support/plants.ts'
import { inOneLine } from './found.ts'

const site = createRouter(siteRows)
const plants = createRouter(plantRows({ limitParameter: 'limit' }))

describe('the method selects row and endpoint', () => {
  test.each([
    ['GET', '/site/v2/posts', 'GET', 'posts.collection'],
    ['HEAD', '/site/v2/posts', 'GET', 'posts.collection'],
    ['POST', '/site/v2/posts', 'POST', 'posts.collection'],
    ['PATCH', '/site/v2/posts/5', 'POST,PUT,PATCH', 'posts.item'],
    ['DELETE', '/site/v2/posts/5', 'DELETE', 'posts.item'],
    ['POST', '/batch/v1', 'POST', 'batch'],
    ['GET', '/site/v2/templates/lookup', 'GET', 'templates.lookup'],
    ['DELETE', '/site/v2/templates/lookup', 'DELETE', 'templates.item'],
    ['PUT', '/site/v2/templates/mine/home/revisions', 'POST,PUT,PATCH', 'templates.item'],
  ])('%s %s selects the endpoint %s of %s', (method, path, methods, id) => {
    const routeMatch = site.find(method, path)
    expect(routeMatch.kind === 'found' && [routeMatch.row.id, routeMatch.endpoint.methods.join()]).toEqual([
      id,
      methods,
    ])
  })

  test.each([
    ['PUT', '/site/v2/posts', 'wrong-method posts.collection /site/v2/posts'],
    ['GET', '/batch/v1/', 'wrong-method batch /batch/v1'],
    ['FOO', '/site/v2/posts/007', 'wrong-method posts.item /site/v2/posts/7'],
    ['get', '/site/v2/posts', 'wrong-method posts.collection /site/v2/posts'],
    ['__proto__', '/site/v2/posts', 'wrong-method posts.collection /site/v2/posts'],
    ['OPTIONS', '/site/v2/posts/', 'options posts.collection /site/v2/posts'],
    ['OPTIONS', '/site/v2/templates/lookup', 'options templates.lookup /site/v2/templates/lookup'],
    ['OPTIONS', '/site/v2/nothing', 'unlisted /site/v2/nothing'],
    ['FOO', '/site/v2/nothing', 'unlisted /site/v2/nothing'],
  ])('%s %s: %s', (method, path, line) => {
    expect(inOneLine(site.find(method, path))).toBe(line)
  })

  test.each([
    ['GET', '/plants', 'plants.collection /plants'],
    ['HEAD', '/plants/', 'plants.collection /plants'],
    ['POST', '/plants', 'plants.collection /plants'],
    ['DELETE', '/plants/12', 'plants.item /plants/12'],
    // The plant store does not say that its identifiers in paths are numbers: their spelling is its own.
    ['DELETE', '/plants/012', 'plants.item /plants/012'],
    ['DELETE', '/plants/9007199254740993', 'plants.item /plants/9007199254740993'],
    ['DELETE', '/plants/a%20b', 'plants.item /plants/a%20b'],
    ['DELETE', '/plants/1%2F2', 'refused: encoded-slash'],
    ['GET', '/plants/12', 'wrong-method plants.item /plants/12'],
    ['GET', '/plants/12/leaves', 'unlisted /plants/12/leaves'],
  ])('plants: %s %s: %s', (method, path, line) => {
    expect(inOneLine(plants.find(method, path))).toBe(line)
  })
})
