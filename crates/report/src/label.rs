//! Short names of tasks and resources.

use lockwright_model::ResourceId;

/// The name, cut to at most `most` characters.
pub fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// The letter of a resource, by its order in the picture. From the twenty-seventh on, all have `*`.
pub fn letter(resource: ResourceId, resources: &[ResourceId]) -> char {
    let place = resources.iter().position(|&other| other == resource).and_then(|place| u8::try_from(place).ok());
    place.filter(|&place| place < 26).map_or('*', |place| char::from(b'a' + place))
}
