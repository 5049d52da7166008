// Generic functions, closures and iterators: most of it is inlined.
use std::collections::BTreeMap;

trait Shape {
    fn area(&self) -> f64;
    fn twice(&self) -> f64 {
        2.0 * self.area()
    }
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        3.14 * self.0 * self.0
    }
}

fn largest<T: PartialOrd + Copy>(values: &[T]) -> Option<T> {
    let mut best = *values.first()?;
    for v in values {
        if *v > best {
            best = *v;
        }
    }
    Some(best)
}

fn main() {
    let text = std::env::args().collect::<Vec<_>>().join(" the end of the words ");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for word in text.split_whitespace().map(|w| w.to_lowercase()) {
        *seen.entry(word).or_insert(0) += 1;
    }
    let mut counts: Vec<(usize, String)> = seen.into_iter().map(|(w, n)| (n, w)).collect();
    counts.sort_by(|a, b| b.cmp(a));
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(counts.len() as f64)), Box::new(Circle(2.0))];
    let sum: f64 = shapes.iter().map(|s| s.twice()).sum();
    println!("{:?} {} {:?} {:?}", counts.first(), sum, largest(&[1, 3, 2]), largest(&[1.5, 0.5]));
}
