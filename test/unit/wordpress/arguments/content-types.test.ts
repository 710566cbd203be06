import { describe, expect, test } from 'vitest'
import { argumentsOf, ask, refusalOf } from './support.ts'

const bogus = { method: 'POST', content: '{"status":"bogus"}' }

describe('content types', () => {
  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=x',
    'application/problem+json',
    'application/vnd.x.y+json',
  ])('%s is read as JSON', (contentType) => {
    expect(refusalOf({ ...bogus, contentType })).toMatchObject({
      data: { params: { status: expect.any(String) } },
    })
  })

  test('a form is read like a query', () => {
    const form = { method: 'POST', contentType: 'application/x-www-form-urlencoded; charset=UTF-8' }
    expect(refusalOf({ ...form, content: 'status=bogus' })).toMatchObject({ code: 'rest_invalid_param' })
    expect(
      argumentsOf({ ...form, content: 'title=a+b&categories[]=1&categories[]=2&sti.cky=1' }),
    ).toMatchObject({
      title: 'a b',
      categories: [1, 2],
    })
    expect(argumentsOf({ ...form, content: 'title=\u00e9' })['title']).toBe('\u00e9')
  })

  test('a form may have more parameters than a query, but not more than PHP reads', () => {
    const contentType = 'application/x-www-form-urlencoded'
    const headers = (count: number) => Array.from({ length: count }, (_, i) => `f${i}=1`).join('&')
    expect(ask({ method: 'POST', contentType, content: headers(1000) }).kind).toBe('valid')
    expect(refusalOf({ method: 'POST', contentType, content: headers(1001) })).toMatchObject({
      code: 'trellis_too_many_parameters',
    })
  })

  test.each([
    ['as they are', '.'],
    ['as escapes', '%2e'],
  ])('a form with a name of 1024 characters is read, one with a longer name is not: %s', (_, dot) => {
    const contentType = 'application/x-www-form-urlencoded'
    const dots = dot.repeat(1020 / dot.length)
    expect(ask({ method: 'POST', contentType, content: `a=1&name${dots}=1` }).kind).toBe('valid')
    expect(refusalOf({ method: 'POST', contentType, content: `a=1&names${dots}=1` })).toEqual({
      code: 'trellis_parameter_name_too_long',
      message: 'A parameter has a longer name than allowed.',
      data: { status: 400 },
    })
    expect(argumentsOf({ method: 'POST', contentType, content: `title=${dots}${dots}` })).toHaveProperty(
      'title',
    )
  })

  test('bytes of a form beyond ASCII mean the same as their escapes, and plus is a space in names too', () => {
    const form = { method: 'POST', contentType: 'application/x-www-form-urlencoded' }
    const bytes = Buffer.concat([Buffer.from('title=+'), Buffer.from([0xc3, 0xa9, 0x25, 0x43, 0x33, 0xa9])])
    expect(argumentsOf({ ...form, content: bytes })['title']).toBe(' \u00e9\u00e9')
    expect(argumentsOf({ ...form, content: '++title=a%2Bb&&&' })['title']).toBe('a+b')
  })

  test.each([
    'text/plain',
    'application/json, text/plain',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    '',
  ])('content of type "%s" is refused by endpoints that take no uploads', (contentType) => {
    expect(ask({ ...bogus, contentType })).toMatchObject({
      status: 415,
      code: 'trellis_unsupported_content_type',
    })
  })

  test('an upload is not read', () => {
    expect(
      ask({ row: 'media.collection', method: 'POST', content: 'GIF89a', contentType: 'image/gif' }).kind,
    ).toBe('valid')
  })

  test('content of a GET is ignored', () => {
    expect(ask({ content: '{"per_page":101}' })).toMatchObject({ kind: 'valid', query: '' })
  })
})
